// GpuSlots: which of the machine's GPUs are whose.
//
//   GpuSlots slots(8);
//   std::optional<std::vector<int32_t>> mine = slots.Take(2, true);
//   slots.Release(*mine);

#ifndef TANDEM_SLOW_LANE_DAEMON_GPU_SLOTS_H_
#define TANDEM_SLOW_LANE_DAEMON_GPU_SLOTS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

namespace tandem::slow_lane {

// One thread's.
class GpuSlots {
 public:
  // Slots 0 to total - 1, all free.
  explicit GpuSlots(int32_t total) : total_(total) {
    for (int32_t slot = 0; slot < total; ++slot) free_.insert(slot);
  }

  int32_t total() const { return total_; }

  // The lowest `count` free ones. Where there are fewer: none yet, if they are
  // mandatory; else as many as there are.
  std::optional<std::vector<int32_t>> Take(uint32_t count, bool mandatory) {
    if (mandatory && free_.size() < count) return std::nullopt;
    const auto end = std::next(
        free_.begin(),
        static_cast<std::ptrdiff_t>(std::min<size_t>(count, free_.size())));
    const std::vector<int32_t> taken(free_.begin(), end);
    free_.erase(free_.begin(), end);
    return taken;
  }

  // Taken by a run of an earlier daemon.
  void Mark(const std::vector<int32_t>& slots) {
    for (const int32_t slot : slots) free_.erase(slot);
  }

  // Those beyond the total (an earlier daemon had more) are forgotten.
  void Release(const std::vector<int32_t>& slots) {
    for (const int32_t slot : slots) {
      if (slot >= 0 && slot < total_) free_.insert(slot);
    }
  }

 private:
  const int32_t total_;
  std::set<int32_t> free_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_GPU_SLOTS_H_
