// ReadersLockHeld: whether a viewer watches a run, by the writer's check.
//
//   EXPECT_TRUE(ReadersLockHeld(publisher.path()));

#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// The ring's offset in the file of a region or of a segment.
uint64_t RingOffset(int fd);

// For the file of a region or of a segment. Takes no lock.
bool ReadersLockHeld(const std::string& path);

}  // namespace tandem
