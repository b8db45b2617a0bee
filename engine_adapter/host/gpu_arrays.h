// The arrays on a GPU of an engine's region.
//
// Data flow: EngineSchema -> MakeGpuArrays -> GpuSpecOf -> RegionSpec.
// Ownership: EngineHost and the engine's arrays keep them.

#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/engine.h"
#include "transport/exported_arrays.h"
#include "transport/region_spec.h"

namespace tandem {

// Returns nullptr if the engine wants no arrays on a GPU, has memory of its
// own, or can do without the driver that is missing, which `log` reports (it
// may be empty). Errors: those of ExportedArrays::Make; kInvalidArgument:
// members that memory of its own excludes.
absl::StatusOr<std::shared_ptr<ExportedArrays>> MakeGpuArrays(
    const EngineSchema& schema,
    const std::function<void(absl::string_view)>& log);

// `gpu` may be nullptr.
GpuSpec GpuSpecOf(const ExportedArrays* gpu, const EngineSchema& schema);

}  // namespace tandem
