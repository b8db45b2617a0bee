// Measures how many frames a second one way of writing them into a ring's slots
// makes, and prints the number.
//
//   frame_rates --row=publish --width=640 --height=480 --capacity=8 --seconds=1
//
// Rows: `publish` and `loan` (the frame copied into the loan by memcpy) of a
// FrameWriter in a segment; `memcpy` and `streaming` (non-temporal stores) into
// the same slots of such a segment, with no ring around them.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "transport/base/clock.h"
#include "transport/ring/frame_segment.h"
#include "transport/ring/racy_copy.h"

ABSL_FLAG(std::string, row, "publish", "publish, loan, memcpy or streaming");
ABSL_FLAG(uint32_t, width, 84, "pixels");
ABSL_FLAG(uint32_t, height, 84, "pixels");
ABSL_FLAG(uint32_t, capacity, 8, "slots");
ABSL_FLAG(double, seconds, 0.5, "how long to measure");

namespace tandem {
namespace {

int Main() {
  const std::string row = absl::GetFlag(FLAGS_row);
  const FrameGeometry geometry = {.width = absl::GetFlag(FLAGS_width),
                                  .height = absl::GetFlag(FLAGS_height),
                                  .capacity = absl::GetFlag(FLAGS_capacity),
                                  .metadata_bytes = 64};
  absl::StatusOr<OwnedFrameSegment> segment = OwnedFrameSegment::Create(
      absl::StrCat("benchmark-", getpid(), "-", MonotonicNanos()), geometry);
  if (!segment.ok()) {
    std::fprintf(stderr, "%s\n", segment.status().ToString().c_str());
    return 1;
  }
  FrameWriter& writer = segment->writer();
  // Where the slots' frames are: what a loan gives, time after time.
  std::vector<std::span<std::byte>> slots;
  for (uint32_t i = 0; i < geometry.capacity; ++i) {
    slots.push_back(writer.Loan());
    writer.Commit({}, "");
  }
  const std::vector<std::byte> frame(geometry.FrameBytes(), std::byte{7});
  const FrameMetrics metrics = {
      .last_reward = 1, .rolling_return = 2, .step_rate_hz = 3};
  constexpr char kMetadata[] = R"({"step":123456,"envs":[0,1,2,3]})";

  const auto measure = [&](const auto& write) {
    uint64_t count = 0;
    Deadline end = Deadline::After(absl::GetFlag(FLAGS_seconds) / 4);
    while (!end.PassedAt(MonotonicNanos())) write(count++);  // warms up
    const int64_t begin = MonotonicNanos();
    end = Deadline::After(absl::GetFlag(FLAGS_seconds));
    count = 0;
    int64_t now = begin;
    for (; !end.PassedAt(now); now = MonotonicNanos()) {
      for (int i = 0; i < 16; ++i) write(count++);
    }
    std::printf("%.1f\n", static_cast<double>(count) * 1e9 /
                              static_cast<double>(now - begin));
    return 0;
  };
  if (row == "publish") {
    return measure(
        [&](uint64_t) { writer.Publish(frame, metrics, kMetadata); });
  }
  if (row == "loan") {
    return measure([&](uint64_t) {
      std::memcpy(writer.Loan().data(), frame.data(), frame.size());
      writer.Commit(metrics, kMetadata);
    });
  }
  if (row == "memcpy" || row == "streaming") {
    const Cache cache = row == "memcpy" ? Cache::kInto : Cache::kPast;
    return measure([&](uint64_t count) {
      RacyCopy(slots[count % slots.size()], frame, cache);
      if (cache == Cache::kPast) StoresBefore();
    });
  }
  std::fprintf(stderr, "no row is called '%s'; see --help\n", row.c_str());
  return 64;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures one row of the frame benchmark.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
