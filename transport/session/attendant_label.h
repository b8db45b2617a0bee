// The label and the pid in an attendant's slot, for people.
//
//   StoreLabel("panel", slot);   // the attendant
//   LabelOf(*slot);              // any process: "panel"
//   LabelAndPid(*slot);          // any process: "'panel' (pid 4711)"

#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "schema/layout/attendant_slot.h"

namespace tandem {

// Stores at most kMaxLabelBytes.
inline void StoreLabel(absl::string_view label, AttendantSlot* slot) {
  for (size_t i = 0; i < std::size(slot->label); ++i) {
    const bool inside = i < label.size() && i < kMaxLabelBytes;
    // relaxed: a text for people, which a reader may see half written.
    slot->label[i].store(inside ? static_cast<uint8_t>(label[i]) : 0,
                         std::memory_order_relaxed);
  }
}

// Returns the label, escaped as by Printable. Accepts any bytes.
inline std::string LabelOf(const AttendantSlot& slot) {
  std::string label;
  for (const SharedWord<uint8_t>& byte : slot.label) {
    // relaxed: as in StoreLabel.
    const char letter = static_cast<char>(byte.load(std::memory_order_relaxed));
    if (letter == '\0') break;
    label.push_back(letter);
  }
  return Printable(label);
}

inline std::string LabelAndPid(const AttendantSlot& slot) {
  // relaxed: a label for people.
  return absl::StrCat("'", LabelOf(slot), "' (pid ",
                      slot.pid.load(std::memory_order_relaxed), ")");
}

}  // namespace tandem
