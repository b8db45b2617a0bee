// Tape: what a run has shown in the last time, in bounded memory.
//
// Data flow: each new entry -> Keep -> the entry of an earlier time, for freeze
// and scrub.
// Ownership: one view of a run; one thread. Entries are shared: a reader may
// keep one after the tape has removed it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>

namespace tandem {

struct TapeLimits {
  int64_t span_ns = 60'000'000'000;
  int64_t least_gap_ns = 100'000'000;  // between two entries
  // A tape of large entries is shorter than span_ns. At least one is kept.
  size_t bytes = size_t{32} << 20;
  // Beyond `bytes` every second of the older entries is removed, so that the
  // tape keeps its span; otherwise the oldest ones.
  bool thins = false;
};

// `Entry` has at_ns, CLOCK_MONOTONIC, which never falls, and bytes().
template <typename Entry>
class Tape {
 public:
  using Limits = TapeLimits;
  static constexpr size_t kBytesOfAll = size_t{256} << 20;  // of a front end

  explicit Tape(const Limits& limits)
      : limits_(limits), most_bytes_(limits.bytes) {}

  // Keeps an entry, and removes those beyond the limits.
  void Keep(std::shared_ptr<const Entry> entry) {
    bytes_ += entry->bytes();
    entries_.push_back(std::move(entry));
    RemoveBeyondLimits();
  }
  void Keep(Entry entry) {
    Keep(std::make_shared<const Entry>(std::move(entry)));
  }
  void Clear() {
    entries_.clear();
    bytes_ = 0;
  }
  // Whether the newest entry is younger than least_gap_ns.
  bool HasYoung(int64_t now_ns) const {
    return !empty() && now_ns - end_ns() < limits_.least_gap_ns;
  }

  // Shares kBytesOfAll among the tapes of a front end, of which this is one.
  // Removes entries beyond the new limit.
  void ShareWith(size_t tapes) {
    limits_.bytes =
        std::min(most_bytes_, kBytesOfAll / std::max<size_t>(1, tapes));
    RemoveBeyondLimits();
  }

  // Returns the newest entry from `at_ns` or earlier; otherwise the oldest
  // entry; nullptr: none.
  std::shared_ptr<const Entry> At(int64_t at_ns) const {
    if (empty()) return nullptr;
    const auto after = std::ranges::upper_bound(
        entries_, at_ns, {}, [](const auto& entry) { return entry->at_ns; });
    return after == entries_.begin() ? entries_.front() : *std::prev(after);
  }
  // Oldest first.
  const std::deque<std::shared_ptr<const Entry>>& entries() const {
    return entries_;
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }
  // CLOCK_MONOTONIC of the first and the last entry; 0: none.
  int64_t begin_ns() const { return empty() ? 0 : entries_.front()->at_ns; }
  int64_t end_ns() const { return empty() ? 0 : entries_.back()->at_ns; }

 private:
  void RemoveBeyondLimits() {
    while (size() > 1 && end_ns() - begin_ns() > limits_.span_ns) RemoveFirst();
    if (limits_.thins && bytes_ > limits_.bytes) Thin();
    while (size() > 1 && bytes_ > limits_.bytes) RemoveFirst();
  }
  void RemoveFirst() {
    bytes_ -= entries_.front()->bytes();
    entries_.pop_front();
  }
  // Keeps the newest quarter, and every second of the others.
  void Thin() {
    std::deque<std::shared_ptr<const Entry>> kept;
    const size_t older = size() - size() / 4 - 1;
    for (size_t i = 0; i < size(); ++i) {
      if (i >= older || i % 2 == 0) {
        kept.push_back(std::move(entries_[i]));
      } else {
        bytes_ -= entries_[i]->bytes();
      }
    }
    entries_ = std::move(kept);
  }

  Limits limits_;
  size_t most_bytes_;
  std::deque<std::shared_ptr<const Entry>> entries_;
  size_t bytes_ = 0;
};

}  // namespace tandem
