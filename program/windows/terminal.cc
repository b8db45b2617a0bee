// Texts follow each other: a console takes sequences only in a mode of its own.
#include "program/terminal.h"

#include <cerrno>

namespace tandem {

bool TerminalTakesEscapes() { return false; }
TerminalSize SizeOfTerminal() { return {}; }
bool IsClosedPipe(int error) { return error == EPIPE || error == EINVAL; }

}  // namespace tandem
