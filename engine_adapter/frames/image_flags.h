// The image flags that every engine server has.
//
// Data flow: command line -> ImageOptions, or none.
//
//   absl::StatusOr<std::optional<ImageOptions>> images = ImagesFromFlags();

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_FLAGS_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_FLAGS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine_adapter/frames/image_options.h"

namespace tandem {

// None without --images. kInvalidArgument for a value that cannot be. Call
// after ParseCommandLine.
absl::StatusOr<std::optional<ImageOptions>> ImagesFromFlags();

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_FLAGS_H_
