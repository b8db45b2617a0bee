// MachineRoom: the processors and the memory of the machine that no run has
// reserved.
//
// Data flow: what the runs reserve -> Take -> Has, for the next run in the
// queue.
// Ownership: a value type; the RunStarter makes one for each dispatch.

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem::slow_lane {

// What a run reserves, or a machine has.
struct MachineShare {
  uint64_t cpus = 0;
  uint64_t memory_mb = 0;
  friend bool operator==(const MachineShare&, const MachineShare&) = default;
};

class MachineRoom {
 public:
  explicit MachineRoom(const MachineShare& machine)
      : machine_(machine), free_(machine) {}

  // A share that is larger than the machine counts as the whole machine.
  MachineShare Limited(const MachineShare& share) const {
    return {std::min(share.cpus, machine_.cpus),
            std::min(share.memory_mb, machine_.memory_mb)};
  }

  bool Has(const MachineShare& share) const {
    const MachineShare limited = Limited(share);
    return limited.cpus <= free_.cpus && limited.memory_mb <= free_.memory_mb;
  }

  // Reserves a share. The runs of an earlier daemon with a larger machine may
  // have more than there is.
  void Take(const MachineShare& share) {
    free_.cpus -= std::min(share.cpus, free_.cpus);
    free_.memory_mb -= std::min(share.memory_mb, free_.memory_mb);
  }

  // Returns the share as a text for people.
  std::string Name(const MachineShare& share) const {
    std::string text = absl::StrCat(share.cpus, " of ", machine_.cpus,
                                    machine_.cpus == 1 ? " core" : " cores");
    if (share.memory_mb > 0) {
      absl::StrAppend(&text, ", ", share.memory_mb, " of ", machine_.memory_mb,
                      " MiB");
    }
    return text;
  }

 private:
  const MachineShare machine_;
  MachineShare free_;
};

}  // namespace tandem::slow_lane
