// A region's objects in the kernel: their names, and links to them.
//
// Data flow: the random identity of shared memory -> the names of its section,
// its locks and its bells. No region's name begins with a dot.
//
//   ObjectName(id);  // ".tandem-0123456789abcdeffedcba9876543210"
//   UniqueFd link;
//   MakeLink("demo", section.get(), false, &link);
//   // now OpenFileMapping finds "demo"

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"

namespace tandem {

inline std::string ObjectName(const SharedRegion::Id& id) {
  return absl::StrCat(".tandem-", absl::Hex(id.device, absl::kZeroPad16),
                      absl::Hex(id.inode, absl::kZeroPad16));
}

// Returns the name of memory with this identity and size.
inline std::string MemoryName(const SharedRegion::Id& id, uint64_t bytes) {
  return absl::StrCat(ObjectName(id), "-", absl::Hex(bytes));
}

// Makes memory of zeroes with that name. Not valid after an error, which
// GetLastError has.
UniqueFd MakeMemory(const std::string& name, uint64_t bytes, bool group_access);

// Makes a symbolic link to an object with a name. It exists as long as `link`,
// and so no longer than this process. Returns 0, ERROR_ALREADY_EXISTS if any
// object has the name, or another of Win32's errors.
uint32_t MakeLink(absl::string_view name, int target, bool group_access,
                  UniqueFd* link);

}  // namespace tandem
