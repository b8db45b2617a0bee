// What Linux and macOS do differently with a region's file, which has its
// names, its owner, its size and its locks.
//
// Data flow: shared_region.cc and side_locks.cc of base/os/posix call these. On
// Linux the file is the memory, and has no link at first; on macOS it names the
// memory, and has the spare link of a random name at first.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

// A path by which open(2) gives another open file description of `file`.
std::string PathToReopen(int file);

// Gives the file its first link, unless something is there. False: errno.
bool GiveSpareLink(int file, const char* spare);
// Takes that link back. Leaves errno undefined.
void TakeSpareLink(int file, const char* spare);

// After the last link was removed. Processes keep their mappings.
void RemoveMemoryWithoutLinks(int file);

// Reads a word of each page of a mapping.
void TouchPages(std::byte* base, uint64_t bytes);

}  // namespace tandem
