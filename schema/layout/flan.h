// The FLAN frame ring, version 1. One writer publishes frames; readers take the
// newest. MOSAIC's programs read and write the same bytes.
//
// Data flow: the writer fills a slot, then publishes head; readers begin at
// head.
// Ownership: a segment `mosaic.fastlane.{run_id}` in shared memory, or the
// section of an LRBC region at flan_offset.
//
// After the header are `capacity` slots of `slot_size` bytes: FlanSlot,
// frame_len bytes of frame, metadata_len bytes of metadata (JSON), unused
// bytes. Frame h (the first is 1) is in slot (h - 1) % capacity.
// `schema/goldens/flan_v1.txt` lists every field; prose refers to it.
//
//   const auto* header = reinterpret_cast<const FlanHeader*>(ring);
//   if (std::memcmp(header->magic, kFlanMagic, 4) != 0) return NotYet();

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/layout/shared_word.h"

namespace tandem {

// The name of a segment in shared memory, without its run id.
inline constexpr char kFlanSegmentPrefix[] = "mosaic.fastlane.";

inline constexpr char kFlanMagic[4] = {'F', 'L', 'A', 'N'};
inline constexpr uint32_t kFlanVersion = 1;

// Bits of flags.
inline constexpr uint32_t kFlanInvalidated = 1;  // the writer has left

// CRC-32 (IEEE 802.3, as zlib's crc32) of the format's name.
inline constexpr uint32_t kFlanRgb = 0xb793dab2;   // "RGB"
inline constexpr uint32_t kFlanRgba = 0xf601dff1;  // "RGBA"
// Frames of bytes that are no image: height 1, channels 1, and width is the
// size of the largest frame. Such rings are in segments of scenes (scene.h).
inline constexpr uint32_t kFlanBytes = 0x46cd817e;  // "BYTES"

// The lock bytes of a ring. A segment's writer locks the first byte of flags
// exclusively. It is the same byte of the file as an engine's lock of a region,
// so one search finds dead files of both kinds. Readers share a lock of the
// first byte of tail, an unused field, in segments and regions. Foreign
// programs hold neither lock.
inline constexpr int64_t kFlanWriterLockByte = 8;
inline constexpr int64_t kFlanReadersLockByte = 48;

// The seq of a slot while frame `number` is being written, and after that.
constexpr uint64_t FlanSeqWriting(uint64_t number) { return 2 * number + 1; }
constexpr uint64_t FlanSeqWhole(uint64_t number) { return 2 * number + 2; }

struct FlanHeader {
  // Tandem's writers write these once; foreign writers rewrite the entire
  // header with each frame, byte by byte, after zeroing it.
  char magic[4];
  uint32_t version;
  SharedWord<uint32_t> flags;  // writer
  uint32_t capacity;           // slots
  uint32_t slot_size;          // bytes: sizeof(FlanSlot) + payload_size
  uint32_t payload_size;       // bytes of a frame and its metadata
  uint32_t width;              // pixels
  uint32_t height;
  uint32_t channels;  // bytes per pixel
  uint32_t format;    // kFlanRgb, kFlanRgba or kFlanBytes

  // Writer: the ring's writer; readers: all others; publishes slots; initially
  // 0. Does not wrap in the lifetime of a machine.
  SharedWord<uint64_t> head;
  uint64_t tail;  // unused

  // Writer: the ring's writer; readers: all others; of the newest frame or the
  // one before it; initially 0.
  SharedDouble last_reward;
  SharedDouble rolling_return;
  SharedDouble step_rate_hz;
};

// The head of a slot. slot_size determines the alignment of slots, so seq may
// be misaligned. Rings in regions pad the metadata; others do not.
struct FlanSlot {
  // Writer: the ring's writer; readers: all others. The number of the frame,
  // and whether it is complete; 0: no frame yet.
  uint64_t seq;
  uint32_t frame_len;     // bytes
  uint32_t metadata_len;  // bytes
};

static_assert(offsetof(FlanHeader, magic) == 0);
static_assert(offsetof(FlanHeader, version) == 4);
static_assert(offsetof(FlanHeader, flags) == kFlanWriterLockByte);
static_assert(offsetof(FlanHeader, capacity) == 12);
static_assert(offsetof(FlanHeader, slot_size) == 16);
static_assert(offsetof(FlanHeader, payload_size) == 20);
static_assert(offsetof(FlanHeader, width) == 24);
static_assert(offsetof(FlanHeader, height) == 28);
static_assert(offsetof(FlanHeader, channels) == 32);
static_assert(offsetof(FlanHeader, format) == 36);
static_assert(offsetof(FlanHeader, head) == 40);
static_assert(offsetof(FlanHeader, tail) == kFlanReadersLockByte);
static_assert(offsetof(FlanHeader, last_reward) == 56);
static_assert(offsetof(FlanHeader, rolling_return) == 64);
static_assert(offsetof(FlanHeader, step_rate_hz) == 72);
static_assert(sizeof(FlanHeader) == 80);
static_assert(alignof(FlanHeader) == 8);
static_assert(std::is_trivially_copyable_v<FlanHeader>);
static_assert(std::is_standard_layout_v<FlanHeader>);

static_assert(offsetof(FlanSlot, seq) == 0);
static_assert(offsetof(FlanSlot, frame_len) == 8);
static_assert(offsetof(FlanSlot, metadata_len) == 12);
static_assert(sizeof(FlanSlot) == 16);
static_assert(std::is_trivially_copyable_v<FlanSlot>);
static_assert(std::is_standard_layout_v<FlanSlot>);

}  // namespace tandem
