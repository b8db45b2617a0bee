#include "base/os/process_handle.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/windows/native.h"

namespace tandem {
namespace {

constexpr size_t kLongestLine = 4096;

// Rounds up: a wait is never too short. 0 stays 0.
DWORD Milliseconds(int64_t nanos) {
  constexpr int64_t kLongest = 0x7FFFFFFF;
  return static_cast<DWORD>(std::min<int64_t>(
      nanos / 1'000'000 + (nanos % 1'000'000 != 0), kLongest));
}

// Quotes a word as CommandLineToArgvW reads it.
std::wstring Quoted(const std::wstring& word) {
  std::wstring quoted = L"\"";
  size_t backslashes = 0;
  for (const wchar_t c : word) {
    if (c == L'"') quoted.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    quoted += c;
  }
  quoted.append(backslashes, L'\\');
  return quoted + L'"';
}

// The handles that a child inherits, and no others.
class Inherited {
 public:
  explicit Inherited(std::array<HANDLE, 3> handles) : handles_(handles) {
    SIZE_T bytes = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
    memory_.resize(bytes);
    InitializeProcThreadAttributeList(list(), 1, 0, &bytes);
    for (const HANDLE handle : handles_) {
      if (handle != nullptr && SetHandleInformation(handle, HANDLE_FLAG_INHERIT,
                                                    HANDLE_FLAG_INHERIT)) {
        valid_.push_back(handle);
      }
    }
    UpdateProcThreadAttribute(list(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                              valid_.data(), valid_.size() * sizeof(HANDLE),
                              nullptr, nullptr);
  }
  ~Inherited() { DeleteProcThreadAttributeList(list()); }
  Inherited(const Inherited&) = delete;
  Inherited& operator=(const Inherited&) = delete;

  PPROC_THREAD_ATTRIBUTE_LIST list() {
    return reinterpret_cast<PPROC_THREAD_ATTRIBUTE_LIST>(memory_.data());
  }

 private:
  std::array<HANDLE, 3> handles_;
  std::vector<HANDLE> valid_;
  std::vector<std::byte> memory_;
};

}  // namespace

uint32_t ProcessId() { return GetCurrentProcessId(); }

std::string ProgramPath() {
  std::wstring path(32768, L'\0');
  path.resize(GetModuleFileNameW(nullptr, path.data(),
                                 static_cast<DWORD>(path.size())));
  return Utf8(path);
}

// std::getenv sees only what its own C library set, or found at the process's
// start; Python has another.
std::string EnvironmentVariable(const char* name) {
  std::wstring value(32768, L'\0');
  value.resize(GetEnvironmentVariableW(Wide(name).c_str(), value.data(),
                                       static_cast<DWORD>(value.size())));
  return Utf8(value);
}

InputWait WaitForInput(int handle, int64_t wait_ns) {
  if (handle < 0) {
    Sleep(Milliseconds(wait_ns));
    return InputWait::kTimedOut;
  }
  return WaitForSingleObject(HandleOf(handle), Milliseconds(wait_ns)) ==
                 WAIT_OBJECT_0
             ? InputWait::kReadable
             : InputWait::kTimedOut;
}

absl::StatusOr<ProcessHandle> ProcessHandle::Start(
    const std::vector<std::string>& words) {
  HANDLE ends[2];
  if (!CreatePipe(&ends[0], &ends[1], nullptr, 0)) {
    return MakeWindowsError("CreatePipe", words[0]);
  }
  UniqueFd reader = Owned(ends[0]);
  const UniqueFd writer = Owned(ends[1]);
  std::wstring line;
  for (const std::string& word : words) line += Quoted(Wide(word)) + L' ';
  STARTUPINFOEXW start = {};
  start.StartupInfo.cb = sizeof(start);
  start.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  start.StartupInfo.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  start.StartupInfo.hStdOutput = ends[1];
  start.StartupInfo.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  Inherited inherited(
      {start.StartupInfo.hStdInput, ends[1], start.StartupInfo.hStdError});
  start.lpAttributeList = inherited.list();
  PROCESS_INFORMATION made = {};
  // A group of its own: Stop's Ctrl-Break reaches no other process.
  if (!CreateProcessW(Wide(words[0]).c_str(), line.data(), nullptr, nullptr,
                      /*bInheritHandles=*/TRUE,
                      CREATE_NEW_PROCESS_GROUP | EXTENDED_STARTUPINFO_PRESENT,
                      nullptr, nullptr, &start.StartupInfo, &made)) {
    return MakeWindowsError("CreateProcess", words[0]);
  }
  CloseHandle(made.hThread);
  return ProcessHandle(Owned(made.hProcess).release(), std::move(reader));
}

std::string ProcessHandle::ReadFirstLine() {
  std::string line;
  char byte = 0;
  DWORD count = 0;
  while (line.size() <= kLongestLine) {
    if (!ReadFile(HandleOf(output_.get()), &byte, 1, &count, nullptr) ||
        count == 0) {
      return "";
    }
    if (byte == '\n') {
      output_.reset();
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    line += byte;
  }
  return "";
}

ProcessEnd ProcessHandle::Stop(double grace_secs) {
  const UniqueFd owned(std::exchange(id_, -1));
  if (!owned.valid()) return {};
  const HANDLE process = HandleOf(owned.get());
  GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, GetProcessId(process));
  const auto grace_ns = static_cast<int64_t>(grace_secs * 1e9);
  if (WaitForSingleObject(process, Milliseconds(grace_ns)) != WAIT_OBJECT_0) {
    TerminateProcess(process, STATUS_CONTROL_C_EXIT);
    WaitForSingleObject(process, INFINITE);
  }
  DWORD code = 0;
  GetExitCodeProcess(process, &code);
  // A process that an event or Stop ended has no exit code of its own.
  if (code == static_cast<DWORD>(STATUS_CONTROL_C_EXIT))
    return {false, SIGTERM};
  return {true, static_cast<int>(code)};
}

}  // namespace tandem
