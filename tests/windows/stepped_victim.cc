#include "tests/windows/stepped_victim.h"

#include "base/os/windows/native.h"
#include "base/os/windows/testing/child_program.h"

namespace tandem {
namespace {

constexpr DWORD kTrapFlag = 1 << 8;

// Of the child's main thread alone, which its own traps interrupt.
int instructions_left = 0;
Stop what_then = Stop::kKill;
HANDLE thaw_event = nullptr;

LONG CALLBACK OnTrap(EXCEPTION_POINTERS* at) {
  if (at->ExceptionRecord->ExceptionCode !=
      static_cast<DWORD>(EXCEPTION_SINGLE_STEP)) {
    return EXCEPTION_CONTINUE_SEARCH;
  }
  if (instructions_left > 0 && --instructions_left > 0) {
    at->ContextRecord->EFlags |= kTrapFlag;
    return EXCEPTION_CONTINUE_EXECUTION;
  }
  at->ContextRecord->EFlags &= ~kTrapFlag;
  if (instructions_left < 0) return EXCEPTION_CONTINUE_EXECUTION;
  instructions_left = -1;
  if (what_then == Stop::kKill) {
    TerminateProcess(GetCurrentProcess(), ChildProgram::kKilled);
  }
  constexpr char kLine[] = "frozen\n";
  DWORD written = 0;
  WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), kLine, sizeof(kLine) - 1, &written,
            nullptr);
  WaitForSingleObject(thaw_event, INFINITE);
  return EXCEPTION_CONTINUE_EXECUTION;
}

}  // namespace

void StepUntil(int instructions, Stop stop, const std::string& event) {
  AddVectoredExceptionHandler(/*First=*/1, OnTrap);
  thaw_event = CreateEventW(nullptr, TRUE, FALSE, Wide(event).c_str());
  what_then = stop;
  instructions_left = instructions + 1;
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

void EndStepping() { instructions_left = -1; }

Thaw::Thaw(const std::string& event)
    : event_(CreateEventW(nullptr, TRUE, FALSE, Wide(event).c_str())) {}
Thaw::~Thaw() { CloseHandle(event_); }
void Thaw::Now() { SetEvent(event_); }

}  // namespace tandem
