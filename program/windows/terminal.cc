// Texts follow each other: a console takes sequences only in a mode of its own.
#include "program/terminal.h"

namespace tandem {

bool TerminalTakesEscapes() { return false; }
TerminalSize SizeOfTerminal() { return {}; }

}  // namespace tandem
