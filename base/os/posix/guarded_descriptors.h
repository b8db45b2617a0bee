// OpenGuarded: descriptors of locks, which a forked child closes.
//
// Data flow: fork -> the child's handler (fork_guard.cc) closes them. The
// kernel holds an open-file-description lock until the last copy of its
// descriptor is closed. Without the handler a forked child would keep a dead
// parent's lock. exec closes the descriptors anyway.
//
//   int fd = OpenGuarded(path);

#pragma once

namespace tandem {

// Calls OpenAboveStandardStreams(path, O_RDWR); a forked child closes the
// descriptor at once. Returns -1 and errno as open(2). May allocate.
// Thread-safe, also against a fork.
int OpenGuarded(const char* path);

// Closes the descriptor. Legal only in the process that opened it.
void CloseGuarded(int fd);

}  // namespace tandem
