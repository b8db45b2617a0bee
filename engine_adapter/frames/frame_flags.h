// The frame flags that every engine server has.
//
// Data flow: command line -> FrameOptions, or none.
//
//   absl::StatusOr<std::optional<FrameOptions>> frames = FramesFromFlags(64);

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_FLAGS_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_FLAGS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine_adapter/frames/frame_options.h"

namespace tandem {

// None without --frames. kInvalidArgument for a value that cannot be. Call
// after ParseCommandLine.
absl::StatusOr<std::optional<FrameOptions>> FramesFromFlags(uint32_t num_envs);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_FLAGS_H_
