// Measures how many frames a second go into a ring's slots, by each way of
// writing them, and prints them as a line of JSON.
//
//   frame_rates --name=NAME --width=640 --height=480 --capacity=8 --seconds=1
//
// `publish` and `loan` (the frame copied into the loan by memcpy) of a
// FrameWriter in a segment; `memcpy` and `streaming` (non-temporal stores) into
// the very same slots, with no ring around them. They take turns, a few writes
// each, and a rate is that of the median turn: what else the machine does hits
// all alike, and a turn that lost its core counts no more than another.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "transport/base/clock.h"
#include "transport/frames/owned_frame_segment.h"
#include "transport/frames/racy_copy.h"

ABSL_FLAG(std::string, name, "frame-rates", "of the segment");
ABSL_FLAG(uint32_t, width, 84, "pixels");
ABSL_FLAG(uint32_t, height, 84, "pixels");
ABSL_FLAG(uint32_t, capacity, 8, "slots");
ABSL_FLAG(double, seconds, 0.5, "how long to measure, all together");

namespace tandem {
namespace {

int Main() {
  const FrameGeometry geometry = {.width = absl::GetFlag(FLAGS_width),
                                  .height = absl::GetFlag(FLAGS_height),
                                  .capacity = absl::GetFlag(FLAGS_capacity),
                                  .metadata_bytes = 64};
  absl::StatusOr<OwnedFrameSegment> segment =
      OwnedFrameSegment::Create(absl::GetFlag(FLAGS_name), geometry);
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
  uint64_t stored = 0;
  const auto store = [&](Cache cache) {
    RacyCopy(slots[stored++ % slots.size()], frame, cache);
    if (cache == Cache::kPast) StoresBefore();
  };
  struct Row {
    const char* name;
    std::function<void()> write;
    std::vector<int64_t> turns_ns = {};
  };
  Row rows[] = {
      {"publish", [&] { writer.Publish(frame, metrics, kMetadata); }},
      {"loan",
       [&] {
         std::memcpy(writer.Loan().data(), frame.data(), frame.size());
         writer.Commit(metrics, kMetadata);
       }},
      {"memcpy", [&] { store(Cache::kInto); }},
      {"streaming", [&] { store(Cache::kPast); }},
  };
  // A turn is some 2 MB. Before it is timed, the cache comes to hold what it
  // holds when this row alone writes.
  const auto writes = static_cast<int>(
      std::clamp<uint64_t>((2 << 20) / geometry.FrameBytes(), 4, 64));
  const bool may_be_cached = slots.size() * frame.size() <= 64 << 20;
  const auto warm_up = may_be_cached ? 4 * slots.size() : 16;
  const Deadline end = Deadline::After(absl::GetFlag(FLAGS_seconds));
  do {
    for (Row& row : rows) {
      for (size_t i = 0; i < warm_up; ++i) row.write();
      const int64_t begin = MonotonicNanos();
      for (int i = 0; i < writes; ++i) row.write();
      row.turns_ns.push_back(MonotonicNanos() - begin);
    }
  } while (!end.PassedAt(MonotonicNanos()));
  const char* before = "{";
  for (Row& row : rows) {
    const auto median =
        row.turns_ns.begin() + static_cast<int64_t>(row.turns_ns.size() / 2);
    std::nth_element(row.turns_ns.begin(), median, row.turns_ns.end());
    std::printf("%s\"%s\": %.1f", std::exchange(before, ", "), row.name,
                1e9 * writes / static_cast<double>(*median));
  }
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures one ring of the frame benchmark.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
