// Fuzz target of the FLAN frame ring. The input is a geometry, then a script of
// calls and, for a lying ring, of overwritten bytes.
//
// Data flow: bytes -> calls on a writer and readers -> abort if an honest ring
// delivers anything but the newest frame, or a lying one an outcome that was
// not promised; AddressSanitizer guards the ring's ends.
//
//   bazel run --config=fuzz //transport/frames:frame_fuzz -- -max_total_time=60
//
// frame_fuzz_test runs the same function over transport/frames/frame_corpus and
// over random scripts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "schema/layout/flan.h"
#include "transport/frame_reader.h"
#include "transport/frame_writer.h"
#include "transport/frames/testing/frame_test_ring.h"
#include "transport/testing/fuzz_script.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;

// The newest frame that was published, as it was given.
struct Twin {
  uint64_t number = 0;
  size_t frame_len = 0;
  std::string metadata;
  bool invalidated = false;
  bool reserved = false;  // the slot of which may be the newest frame's
};

void RequireTwin(const Frame& frame, const Twin& twin) {
  Require(frame.number == twin.number, "another frame than the newest");
  Require(frame.frame_len == twin.frame_len, "another length");
  Require(frame.metadata == twin.metadata, "other metadata");
  Require(IsFrame(twin.number, std::span(frame.pixels).first(frame.frame_len)),
          "other pixels");
}

void Read(FrameReader& reader, bool next, bool lying, const Twin& twin,
          uint64_t* delivered) {
  Frame frame;
  const Found found = next ? reader.Next(&frame) : reader.Newest(&frame);
  if (found == Found::kFrame) {
    Require(frame.pixels.size() == reader.geometry().FrameBytes(),
            "pixels of another size");
    Require(frame.frame_len <= frame.pixels.size(), "too long a frame");
    Require(frame.metadata.size() <= reader.geometry().FrameBytes() +
                                         reader.geometry().metadata_bytes,
            "too much metadata");
  }
  if (lying) return;
  const bool overwritten = twin.reserved && reader.geometry().capacity == 1;
  if (found == Found::kFrame) {
    Require(!overwritten, "a frame that was half overwritten");
    Require(!next || twin.number > *delivered, "a frame twice");
    RequireTwin(frame, twin);
    if (next) *delivered = twin.number;
    return;
  }
  Require(found != Found::kBroken, "an honest ring is called broken");
  Require((found == Found::kInvalidated) == (next && twin.invalidated),
          "the writer's end was missed or made up");
  Require(twin.number == 0 || overwritten ||
              (next && *delivered == twin.number) ||
              (!next && twin.invalidated),
          "a frame was missed");
}

void Run(Script script) {
  FrameGeometry geometry;
  geometry.width = 1 + script.Byte() % 8;
  geometry.height = 1 + script.Byte() % 4;
  geometry.channels = 3 + script.Byte() % 2;
  geometry.capacity = 1 + script.Byte() % 5;
  geometry.metadata_bytes = script.Byte() % 24;
  const bool lying = script.Byte() % 2 == 1;
  FrameTestRing ring(geometry);
  FrameWriter writer = ring.Writer();
  std::optional<FrameReader> reader = ring.Reader(/*grace_ns=*/0);
  Twin twin;
  uint64_t delivered = 0;
  const auto published = [&](uint64_t head, size_t frame_len,
                             const std::string& text) {
    Require(head == twin.number + 1, "heads do not count");
    twin.number = head;
    twin.frame_len = frame_len;
    twin.metadata = text.substr(0, geometry.metadata_bytes);
    twin.reserved = false;
  };
  while (!script.AtEnd()) {
    const uint64_t next = twin.number + 1;
    const std::string text(script.Byte() % 32, 'm');
    switch (script.Byte() % (lying ? 8 : 6)) {
      case 0: {
        const size_t bytes = script.Byte() % (geometry.FrameBytes() + 2);
        const uint64_t head = writer.Publish(MakeFrame(next, bytes), {}, text);
        Require((head == 0) == (bytes > geometry.FrameBytes()),
                "a frame that is too long, or not");
        if (head != 0) published(head, bytes, text);
        break;
      }
      case 1:
        FillFrame(next, writer.Reserve());
        twin.reserved = true;
        break;
      case 2: {
        const uint64_t head = writer.Commit({}, text);
        Require((head != 0) == twin.reserved,
                "a commit without a reserved slot");
        if (head != 0) published(head, geometry.FrameBytes(), text);
        break;
      }
      case 3:
      case 4:
        if (reader.has_value()) {
          Read(*reader, script.Byte() % 2 == 0, lying, twin, &delivered);
        }
        break;
      case 5:
        if (script.Byte() % 16 == 0 && !twin.reserved) {
          writer.Invalidate();
          twin.invalidated = true;
        }
        break;
      case 6: {
        const std::span<std::byte> bytes = ring.bytes();
        const size_t most = script.Byte() % 2 == 0
                                ? sizeof(FlanHeader) + sizeof(FlanSlot)
                                : bytes.size();
        const size_t at = (script.Byte() * size_t{256} + script.Byte()) % most;
        bytes[at] = static_cast<std::byte>(script.Byte());
        break;
      }
      default: {
        absl::StatusOr<FrameReader> again =
            FrameReader::Attach(ring.bytes(), /*grace_ns=*/0);
        reader.reset();
        if (again.ok()) reader = *std::move(again);
        break;
      }
    }
  }
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::Run(tandem::Script(data, std::min<size_t>(size, 4096)));
  return 0;
}
