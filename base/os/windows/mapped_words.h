// The mappings of shared memory in this process, by which word_sleep.cc finds
// the objects on which the sleepers of a word wait.
//
// Data flow: SharedRegion::Map and Unmap -> the list -> SleepOnWord.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

// `name` is that of the memory's objects, to which its words' names append.
void AddMapping(const std::byte* base, uint64_t bytes, std::string name,
                bool group_access);

// No thread sleeps on its words.
void RemoveMapping(const std::byte* base);

}  // namespace tandem
