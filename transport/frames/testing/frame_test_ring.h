// A FLAN ring in plain memory, and frames that encode their number.
//
// Data flow: FrameTestRing -> FrameWriter and FrameReader of one test. All
// FillFrame's bytes follow from the frame's number, so that a test detects a
// frame made of two.
//
//   FrameTestRing ring({.width = 4, .height = 3, .capacity = 2});
//   FrameWriter writer = ring.Writer();

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/frame_reader.h"
#include "transport/frame_writer.h"

namespace tandem {

// Exactly the ring's bytes, in their own heap block.
class FrameTestRing {
 public:
  explicit FrameTestRing(const FrameGeometry& geometry)
      : geometry_(geometry),
        bytes_(FrameWriter::RingBytes(geometry).value()),
        words_(std::make_unique<uint64_t[]>((bytes_ + 7) / 8)) {}

  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(words_.get()), bytes_};
  }
  FlanHeader* header() { return reinterpret_cast<FlanHeader*>(words_.get()); }
  FrameWriter Writer() {
    return FrameWriter::Create(bytes(), geometry_).value();
  }
  FrameReader Reader(int64_t grace_ns = kFrameGraceNs) {
    return FrameReader::Attach(bytes(), grace_ns, geometry_.kind).value();
  }

 private:
  FrameGeometry geometry_;
  size_t bytes_;
  std::unique_ptr<uint64_t[]> words_;
};

// Word i of frame `number`.
inline uint64_t FrameWord(uint64_t number, size_t i) {
  return number * 0x9E3779B97F4A7C15 + i;
}

inline void FillFrame(uint64_t number, std::span<std::byte> frame) {
  for (size_t at = 0; at < frame.size(); at += sizeof(uint64_t)) {
    const uint64_t word = FrameWord(number, at);
    std::memcpy(&frame[at], &word,
                std::min(sizeof(uint64_t), frame.size() - at));
  }
}

inline std::vector<std::byte> MakeFrame(uint64_t number, size_t bytes) {
  std::vector<std::byte> frame(bytes);
  FillFrame(number, frame);
  return frame;
}

// Whether `frame` consists exactly of FillFrame(number)'s bytes.
inline bool IsFrame(uint64_t number, std::span<const std::byte> frame) {
  for (size_t at = 0; at < frame.size(); at += sizeof(uint64_t)) {
    const uint64_t word = FrameWord(number, at);
    if (std::memcmp(&frame[at], &word,
                    std::min(sizeof(uint64_t), frame.size() - at)) != 0) {
      return false;
    }
  }
  return true;
}

inline std::string FrameText(uint64_t number) {
  return "{\"step\": " + std::to_string(number) + "}";
}

}  // namespace tandem
