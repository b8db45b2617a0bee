// Stream: the five kinds of events of a run. Numbers: a number for each kind.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tandem::slow_lane {

enum class Stream : uint8_t {
  kSteps,
  kEpisodes,
  kLifecycle,
  kMalformed,
  kScalars
};

inline constexpr std::array kAllStreams = {
    Stream::kSteps, Stream::kEpisodes, Stream::kLifecycle, Stream::kMalformed,
    Stream::kScalars};

// A number for each stream, such as its highest seq_id. A value type.
class Numbers {
 public:
  constexpr uint64_t& operator[](Stream stream) {
    return by_stream_[static_cast<size_t>(stream)];
  }
  constexpr uint64_t operator[](Stream stream) const {
    return by_stream_[static_cast<size_t>(stream)];
  }
  // Makes each number the greater of both.
  constexpr void RaiseTo(const Numbers& other) {
    for (const Stream stream : kAllStreams) {
      (*this)[stream] = std::max((*this)[stream], other[stream]);
    }
  }
  bool operator==(const Numbers&) const = default;

 private:
  std::array<uint64_t, kAllStreams.size()> by_stream_ = {};
};

}  // namespace tandem::slow_lane
