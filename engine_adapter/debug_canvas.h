// DebugCanvas: the lines and arrows that callers have added to environments.
//
// Data flow: service debug -> Draw -> an environment's marks -> the renderers
// of frames, cameras and viewports -> geoms of the scene.
// Ownership: the engine owns it; the stepping thread calls it. The result of
// Marks never changes; any thread may read it while it holds the pointer.
//
//   DebugCanvas canvas(num_envs);
//   absl::Status status = canvas.Draw(request);
//   state.marks = canvas.Marks(env);

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/engine_ports.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// A line or an arrow in an environment's images.
inline constexpr size_t kMostDebugMarks = 10'000;  // in an environment

struct DebugMark {
  bool is_arrow = false;  // else a line
  std::array<float, 3> from = {};
  std::array<float, 3> to = {};  // not the same point
  std::array<float, 4> rgba = {};
};

using DebugMarks = std::vector<DebugMark>;

// A velocity command is drawn as up to three arrows along the world's axes: x
// (forward), y (left), and z for the turn (up is left, down is right). 1 rad/s
// has the length of 1 m/s. Default colours: lines yellow, arrows red; in a
// command, x and y green, the turn blue. A mark of length 0 or alpha 0 is not
// drawn.
class DebugCanvas final : public DebugPort {
 public:
  explicit DebugCanvas(uint32_t num_envs) : marks_(num_envs) {}

  absl::Status Draw(const rpc::DebugDrawRequestT& request) override;
  void Clear() override { marks_.assign(marks_.size(), nullptr); }

  // Returns the environment's current marks; nullptr: none.
  const std::shared_ptr<const DebugMarks>& Marks(uint32_t env) const {
    return marks_[env];
  }

 private:
  std::vector<std::shared_ptr<const DebugMarks>> marks_;
};

}  // namespace tandem
