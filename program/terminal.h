// The terminal, or a pipe, at standard output.
//
// Data flow: the system's answers.

#pragma once

namespace tandem {

// Whether standard output is a terminal that takes xterm's sequences.
bool TerminalTakesEscapes();

struct TerminalSize {
  unsigned rows = 24;
  unsigned columns = 80;
};

// TerminalSize() if it is unknown.
TerminalSize SizeOfTerminal();

// Whether a write with this errno met a pipe whose reader is gone.
bool IsClosedPipe(int error);

}  // namespace tandem
