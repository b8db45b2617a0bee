// The flags of frames and images, common to all engine servers.
//
// Data flow: command line -> FrameOptions and ImageOptions, or none.

#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/frame_source.h"

namespace tandem {

// Call after ParseCommandLine. Returns nullopt without --frames, or without
// --images. kInvalidArgument for an invalid value.
absl::StatusOr<std::optional<FrameOptions>> FramesFromFlags(uint32_t num_envs);
absl::StatusOr<std::optional<ImageOptions>> ImagesFromFlags();
// --scene_hz; EngineHost::Create checks it.
double SceneHzFromFlags();

// For these two, and their tests.

// Parses "320x240" into width and height. Error texts begin with `flag`.
absl::Status ParseFrameSize(absl::string_view flag, absl::string_view text,
                            FrameOptions* options);

// Parses "0,3,5", "all", or "" for the first four environments.
absl::Status ParseFrameEnvs(absl::string_view text, uint32_t num_envs,
                            FrameOptions* options);

// Parses some of "shadows,reflections,multisampling", or "all", or "" for none.
absl::Status ParseFrameEffects(absl::string_view flag, absl::string_view text,
                               FrameOptions* options);

// Parses "follow", "gymnasium" or the name of a camera of the model.
absl::Status ParseFrameCamera(absl::string_view text, FrameOptions* options);

}  // namespace tandem
