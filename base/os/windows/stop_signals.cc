#include "base/os/stop_signals.h"

#include <signal.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/os/windows/native.h"

namespace tandem {
namespace {

// Writer: HandleStopSignals; reader: the system's thread for an event.
std::atomic<void (*)(int)> handler_of_events{nullptr};

// Ctrl-C is SIGINT. Ctrl-Break, a closed console, a log-off and a shut-down are
// SIGTERM; after the last three the system ends the process as soon as this
// returns.
BOOL WINAPI OnConsoleEvent(DWORD event) {
  // SYNC(stop_signals.handler): acquire; what the handler uses.
  void (*const handler)(int) =
      handler_of_events.load(std::memory_order_acquire);
  handler(event == CTRL_C_EVENT ? SIGINT : SIGTERM);
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) Sleep(INFINITE);
  return TRUE;
}

}  // namespace

std::vector<int> StopSignals() { return {SIGINT, SIGTERM}; }

void PrepareServer() {
  // A child inherits that its launcher's console ignores Ctrl-C.
  SetConsoleCtrlHandler(nullptr, FALSE);
}

void HandleStopSignals(void (*handler)(int signal)) {
  // SYNC(stop_signals.handler): release; what the handler uses.
  if (handler_of_events.exchange(handler, std::memory_order_release) ==
      nullptr) {
    SetConsoleCtrlHandler(OnConsoleEvent, TRUE);
  }
}

void EndBySignal(int) {
  TerminateProcess(GetCurrentProcess(), STATUS_CONTROL_C_EXIT);
  Sleep(INFINITE);
  __builtin_unreachable();
}

std::string DescribeSignal(int number) {
  if (number == SIGINT) return "Interrupt";
  if (number == SIGTERM) return "Terminated";
  return absl::StrCat("signal ", number);
}

bool HideFromChildren(int handle) {
  if (SetHandleInformation(HandleOf(handle), HANDLE_FLAG_INHERIT, 0)) {
    return true;
  }
  errno = EBADF;
  return false;
}

std::string TimeOfDay() {
  SYSTEMTIME now;
  GetLocalTime(&now);
  return absl::StrFormat("%02d:%02d:%02d.%03d", now.wHour, now.wMinute,
                         now.wSecond, now.wMilliseconds);
}

void WriteToStandardError(absl::string_view text) {
  DWORD written = 0;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), text.data(),
            static_cast<DWORD>(text.size()), &written, nullptr);
}

}  // namespace tandem
