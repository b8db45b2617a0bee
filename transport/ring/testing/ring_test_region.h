// TestRegion: a ring's header, data and bells, for tests and benchmarks.
//
// Data flow: none; tests pass its parts to RingWriter and RingReader, and
// overwrite them as a lying peer would.
// Ownership: the test owns it. The data is between canaries.
//
//   TestRegion region(64);
//   RingWriter writer = region.Writer();
//   region.header().write_pos.store(12, std::memory_order_release);

#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "schema/layout/ring_header.h"
#include "schema/layout/shared_word.h"
#include "transport/ring/ring.h"
#include "transport/wait/doorbell.h"

namespace tandem {

// Located in a shared mapping, so that a forked child sees the same bytes.
// Aborts on errors that no test expects.
class TestRegion {
 public:
  explicit TestRegion(uint32_t capacity, uint32_t start_pos = 0)
      : capacity_(capacity),
        mapped_bytes_(sizeof(Head) + 2 * kCanaryBytes + capacity) {
    void* mapping = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) std::abort();
    head_ = static_cast<Head*>(mapping);
    const std::span<std::byte> all = Canaries();
    std::fill(all.begin(), all.end(), kCanary);
    std::fill(data().begin(), data().end(), std::byte{0});
    SetPositions(start_pos, start_pos);
  }
  TestRegion(const TestRegion&) = delete;
  TestRegion& operator=(const TestRegion&) = delete;
  ~TestRegion() { munmap(head_, mapped_bytes_); }

  RingHeader& header() { return head_->ring; }
  std::span<std::byte> data() {
    return Canaries().subspan(kCanaryBytes, capacity_);
  }
  Doorbell writer_bell() {
    return Doorbell(&head_->writer_doorbell, &head_->writer_sleepers);
  }
  Doorbell reader_bell() {
    return Doorbell(&head_->reader_doorbell, &head_->reader_sleepers);
  }
  // No grace period by default: invalid data breaks the ring at once.
  RingWriter Writer(int64_t grace_ns = 0) {
    return RingWriter::Attach(&header(), data(), reader_bell(), grace_ns)
        .value();
  }
  RingReader Reader(int64_t grace_ns = 0) {
    return RingReader::Attach(&header(), data(), writer_bell(), grace_ns)
        .value();
  }

  void SetPositions(uint32_t write_pos, uint32_t read_pos) {
    // relaxed: no other side runs.
    header().write_pos.store(write_pos, std::memory_order_relaxed);
    header().read_pos.store(read_pos, std::memory_order_relaxed);
  }
  uint32_t write_pos() {
    // relaxed: a test reads only the number.
    return header().write_pos.load(std::memory_order_relaxed);
  }
  uint32_t read_pos() {
    // relaxed: as above.
    return header().read_pos.load(std::memory_order_relaxed);
  }
  // The number of sleeping threads of the writer's side.
  uint32_t writer_sleepers() {
    // relaxed: as above.
    return head_->writer_sleepers.load(std::memory_order_relaxed);
  }
  uint32_t WordAt(uint32_t offset) {
    uint32_t word;
    std::memcpy(&word, data().data() + offset, sizeof(word));
    return word;
  }
  void SetWordAt(uint32_t offset, uint32_t word) {
    std::memcpy(data().data() + offset, &word, sizeof(word));
  }

  // Whether the bytes around the data are unchanged.
  bool CanariesLive() {
    const std::span<std::byte> all = Canaries();
    const auto lives = [](std::byte byte) { return byte == kCanary; };
    return std::all_of(all.begin(), all.begin() + kCanaryBytes, lives) &&
           std::all_of(all.end() - kCanaryBytes, all.end(), lives);
  }

 private:
  static constexpr size_t kCanaryBytes = 4096;
  static constexpr std::byte kCanary{0xA5};

  struct alignas(128) Head {
    RingHeader ring;
    alignas(128) SharedWord<uint32_t> writer_doorbell;
    alignas(128) SharedWord<uint32_t> writer_sleepers;
    alignas(128) SharedWord<uint32_t> reader_doorbell;
    alignas(128) SharedWord<uint32_t> reader_sleepers;
  };

  // The data with a canary on each side.
  std::span<std::byte> Canaries() {
    return {reinterpret_cast<std::byte*>(head_ + 1),
            capacity_ + 2 * kCanaryBytes};
  }

  uint32_t capacity_;
  size_t mapped_bytes_;
  Head* head_;
};

// A ring and both its ends.
//
//   auto [region, writer, reader] = RingEnds(64);
struct RingEnds {
  explicit RingEnds(uint32_t capacity, uint32_t start_pos = 0,
                    int64_t reader_grace_ns = 0)
      : region(capacity, start_pos), reader(region.Reader(reader_grace_ns)) {}

  TestRegion region;
  RingWriter writer = region.Writer();
  RingReader reader;
};

}  // namespace tandem
