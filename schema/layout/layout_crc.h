// The checksum over a header's constant bytes.
//
// Data flow: the engine computes it last, before the region has a name. A
// client computes it over its copy of the header, and compares.
//
//   header.layout_crc32 = LayoutCrc(header);

#ifndef TANDEM_SCHEMA_LAYOUT_LAYOUT_CRC_H_
#define TANDEM_SCHEMA_LAYOUT_LAYOUT_CRC_H_

#include <zlib.h>

#include <cstdint>

#include "schema/layout/lrbc.h"

namespace tandem {

// Returns the layout_crc32 of a header, over the bytes of kLayoutCrcRanges.
inline uint32_t LayoutCrc(const LrbcHeader& header) {
  const auto* bytes = reinterpret_cast<const Bytef*>(&header);
  uLong crc = crc32(0, nullptr, 0);
  for (const auto& [first, length] : kLayoutCrcRanges) {
    crc = crc32(crc, bytes + first, length);
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace tandem

#endif  // TANDEM_SCHEMA_LAYOUT_LAYOUT_CRC_H_
