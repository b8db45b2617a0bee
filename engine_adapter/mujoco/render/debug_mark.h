// DebugMark: a line or an arrow in an environment's pictures.
//
// Data flow: DebugCanvas -> SceneRenderer.
//
//   marks.push_back({.from = {0, 0, 0}, .to = {0, 0, 1}, .rgba = {1, 0, 0,
//   1}});

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_DEBUG_MARK_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_DEBUG_MARK_H_

#include <array>
#include <cstddef>
#include <vector>

namespace tandem {

inline constexpr size_t kMostDebugMarks = 10'000;  // in an environment

struct DebugMark {
  bool is_arrow = false;  // else a line
  std::array<float, 3> from = {};
  std::array<float, 3> to = {};  // not the same point
  std::array<float, 4> rgba = {};
};

using DebugMarks = std::vector<DebugMark>;

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_DEBUG_MARK_H_
