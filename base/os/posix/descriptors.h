// What Linux and macOS make differently, for the sources that they share.
//
// Data flow: none.
// Ownership: the caller closes the descriptors. No started program inherits
// them.

#pragma once

#include <array>

namespace tandem {

// pipe(2): its ends for reading and writing. Returns false and errno.
bool OpenPipe(std::array<int, 2>* ends);

// A descriptor that becomes readable by SetEvent, and remains so; -1: none is
// free.
int OpenEvent();
void SetEvent(int event);

// This process's environment.
char** Environment();

}  // namespace tandem
