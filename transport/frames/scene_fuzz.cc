// Fuzz target of a scene's reader. The input is the size of a scene, then a
// script of snapshots, of overwritten bytes and of reads.
//
// Data flow: bytes -> calls on a writer and a reader -> abort if an honest
// segment delivers another snapshot than the newest, or a lying one a row that
// was not promised; AddressSanitizer guards the segment's ends.
//
//   bazel run --config=fuzz //transport/frames:scene_fuzz -- -max_total_time=60
//
// scene_fuzz_test runs the same function over transport/frames/scene_corpus and
// over random scripts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/frames/testing/test_scene.h"
#include "transport/scene_reader.h"
#include "transport/testing/fuzz_script.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;

// Returns whether a snapshot was delivered.
bool Read(SceneReader& reader, PoseSnapshot* into) {
  if (reader.Next(into) != Found::kFrame) return false;
  Require(into->rows() <= reader.header().max_rows, "too many rows");
  Require(into->bytes().size() ==
              sizeof(SnapshotHead) +
                  into->rows() * SceneRowBytes(reader.header().nodes),
          "rows of another size");
  for (uint32_t i = 0; i < into->rows(); ++i) {
    Require(into->row(i).env < reader.header().num_envs, "an unknown env");
  }
  return true;
}

void Run(Script script) {
  const SceneSpec spec = {.num_envs = 1u + script.Byte() % 4u,
                          .nodes = script.Byte() % 4u};
  const bool lying = script.Byte() % 2 == 1;
  const uint64_t bytes = SceneBytes(PlanScene(spec, kTestGlb.size()).value());
  const auto words = std::make_unique<uint64_t[]>(bytes / 8);
  const std::span<std::byte> memory = std::as_writable_bytes(
      std::span(words.get(), static_cast<size_t>(bytes / 8)));
  TestScene scene(spec, memory);
  absl::StatusOr<SceneReader> reader = SceneReader::Attach(memory);
  Require(reader.ok(), "an honest segment is refused");
  uint64_t published = 0;
  uint64_t delivered = 0;
  PoseSnapshot snapshot;
  while (!script.AtEnd()) {
    switch (script.Byte() % (lying ? 4 : 2)) {
      case 0:
        scene.Publish(++published, script.Byte() % (spec.num_envs + 1));
        break;
      case 1:
        if (!reader.ok()) break;
        if (Read(*reader, &snapshot)) {
          Require(lying || (snapshot.head().exchange == published &&
                            IsSnapshot(snapshot)),
                  "another snapshot");
          delivered = published;
        }
        Require(lying || delivered == published, "a snapshot was missed");
        break;
      case 2: {
        const size_t most =
            script.Byte() % 2 == 0 ? sizeof(SceneHeader) : memory.size();
        memory[(script.Byte() * size_t{256} + script.Byte()) % most] =
            static_cast<std::byte>(script.Byte());
        break;
      }
      default:
        reader = SceneReader::Attach(memory);
        break;
    }
  }
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::Run(tandem::Script(data, std::min<size_t>(size, 4096)));
  return 0;
}
