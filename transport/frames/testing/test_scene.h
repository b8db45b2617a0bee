// TestScene: a scene's segment in plain memory, and snapshots that encode their
// number.
//
// Data flow: TestScene -> a writer and readers of one test. All FillSnapshot's
// poses follow from the number, so that a test detects a snapshot made of two.
//
//   TestScene scene({.num_envs = 3, .nodes = 2}, memory);
//   scene.Publish(7, /*rows=*/2);

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "transport/frame_writer.h"
#include "transport/pose_snapshot.h"
#include "transport/scene_geometry.h"

namespace tandem {

inline constexpr absl::string_view kTestGlb = "glTF: a sample";

inline void FillSnapshot(uint64_t number, uint32_t nodes, uint32_t rows,
                         PoseSnapshot* into) {
  into->Resize(nodes, rows);
  into->head().exchange = number;
  for (uint32_t i = 0; i < rows; ++i) {
    into->row(i) = {.env = i,
                    .flags = 0,
                    .episode = 1,
                    .step = number,
                    .sim_time = 0,
                    .episode_return = 0,
                    .reward = 0};
    float next = static_cast<float>(number % 1000 + i);
    for (float& x : into->poses(i)) x = next += 0.5F;
  }
}

// Whether all of it was made for one number, and how many rows it has.
inline bool IsSnapshot(const PoseSnapshot& found) {
  PoseSnapshot expected;
  FillSnapshot(found.head().exchange, found.nodes(), found.rows(), &expected);
  return std::ranges::equal(expected.bytes(), found.bytes());
}

class TestScene {
 public:
  // `memory` is zero and large enough.
  TestScene(const SceneSpec& spec, std::span<std::byte> memory)
      : header_(PlanScene(spec, kTestGlb.size()).value()),
        writer_(WriteScene(header_, kTestGlb, memory)) {}

  void Publish(uint64_t number, uint32_t rows) {
    FillSnapshot(number, header_.nodes, rows, &snapshot_);
    writer_.Publish(snapshot_.bytes(), {}, "");
  }
  const SceneHeader& header() const { return header_; }
  FrameWriter& writer() { return writer_; }

 private:
  SceneHeader header_;
  FrameWriter writer_;
  PoseSnapshot snapshot_;
};

}  // namespace tandem
