// FrameMetadata: what a frame's JSON says that a view can use.
//
// Data flow: the writer's JSON text -> checked numbers. Other people's bytes:
// bounded, parsed without exceptions; what is missing or odd is left out.
//
//   ParseFrameMetadata(R"({"step": 7, "envs": [0, 1]})").step;  // 7

#ifndef TANDEM_VIZ_CORE_FRAME_METADATA_H_
#define TANDEM_VIZ_CORE_FRAME_METADATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Greater numbers, of either sign, are left out: a double does not hold all of
// them, so that no writer in JSON can mean them; and sums of such do not
// overflow.
inline constexpr int64_t kMaxMetadataInteger = int64_t{1} << 53;

struct FrameMetadata {
  std::optional<int64_t> step;
  std::vector<int64_t> envs;  // environments in the tiles, in order
  // Episodes ended since the run began: a running count, so that the viewer
  // misses none however many frames it drops.
  std::optional<int64_t> episodes;
  // Why the picture is not what it should be: drawing failed. At most 512
  // bytes; empty: all is well.
  std::string error;
};

// Texts over 64 KiB, and lists of over 4096 environments, are left out.
FrameMetadata ParseFrameMetadata(absl::string_view json);

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_FRAME_METADATA_H_
