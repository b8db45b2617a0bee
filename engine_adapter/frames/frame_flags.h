// The flags of frames and images, common to all engine servers.
//
// Data flow: command line -> FrameOptions and ImageOptions, or none.
//
//   absl::StatusOr<std::optional<FrameOptions>> frames = FramesFromFlags(64);
//   absl::StatusOr<std::optional<ImageOptions>> images = ImagesFromFlags();

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_FLAGS_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_FLAGS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine_adapter/frame_source.h"

namespace tandem {

// Call after ParseCommandLine. Returns nullopt without --frames, or without
// --images. kInvalidArgument for an invalid value.
absl::StatusOr<std::optional<FrameOptions>> FramesFromFlags(uint32_t num_envs);
absl::StatusOr<std::optional<ImageOptions>> ImagesFromFlags();

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_FLAGS_H_
