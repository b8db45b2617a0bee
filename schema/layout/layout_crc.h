// The checksums over a header's constant bytes.
//
// Data flow: the engine computes it last, before the region has a name. A
// client computes it over its copy of the header, and compares.
//
//   header.layout_crc32 = LayoutCrc(header);

#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"

namespace tandem {

// Returns the CRC-32 of these ranges of a header's bytes, in order, then of all
// records of a table.
template <size_t kRanges, typename Record = std::byte>
uint32_t CrcOf(const LrbcHeader& header, const uint32_t (&ranges)[kRanges][2],
               std::span<const Record> table = {}) {
  const auto* bytes = reinterpret_cast<const Bytef*>(&header);
  uLong crc = crc32(0, nullptr, 0);
  for (const auto& [first, length] : ranges) {
    crc = crc32(crc, bytes + first, length);
  }
  // zlib returns its initial value for nullptr.
  if (table.empty()) return static_cast<uint32_t>(crc);
  return static_cast<uint32_t>(
      crc32(crc, reinterpret_cast<const Bytef*>(table.data()),
            static_cast<uInt>(table.size_bytes())));
}

// The layout_crc32 of a header.
inline uint32_t LayoutCrc(const LrbcHeader& header) {
  return CrcOf(header, kLayoutCrcRanges);
}
// Its attendants_crc32.
inline uint32_t AttendantsCrc(const LrbcHeader& header) {
  return CrcOf(header, kAttendantsCrcRanges);
}
// Its image_slots_crc32.
inline uint32_t ImageSlotsCrc(const LrbcHeader& header) {
  return CrcOf(header, kImageSlotsCrcRanges);
}
// Its fields_crc32; `fields` are all records of the table, at most kMaxFields.
inline uint32_t FieldsCrc(const LrbcHeader& header,
                          std::span<const FieldRecord> fields) {
  return CrcOf(header, kFieldsCrcRanges, fields);
}
// Its gpu_arrays_crc32, in the same way.
inline uint32_t GpuArraysCrc(const LrbcHeader& header,
                             std::span<const FieldRecord> arrays) {
  return CrcOf(header, kGpuArraysCrcRanges, arrays);
}
// Its workers_crc32; `rows` are those of all slots, at most kMaxWorkers.
inline uint32_t WorkersCrc(const LrbcHeader& header,
                           std::span<const WorkerRows> rows) {
  return CrcOf(header, kWorkersCrcRanges, rows);
}

}  // namespace tandem
