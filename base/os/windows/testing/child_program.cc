#include "base/os/windows/testing/child_program.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/os/process_handle.h"
#include "base/os/windows/native.h"

extern "C" {
LONG NTAPI NtSuspendProcess(HANDLE process);
LONG NTAPI NtResumeProcess(HANDLE process);
}

namespace tandem {
namespace {

std::map<std::string, ChildBody::Body>& Bodies() {
  static auto* const bodies = new std::map<std::string, ChildBody::Body>;
  return *bodies;
}

void Expect(bool done, const char* call) {
  if (done) return;
  std::fprintf(stderr, "tandem: %s failed: error %lu\n", call, GetLastError());
  std::abort();
}

// {a process's number}: sends Ctrl-C in the console of the process. That
// console becomes the sender's, so the test's own process cannot.
const ChildBody kInterrupt("interrupt", [](const std::vector<std::string>& w) {
  FreeConsole();
  SetConsoleCtrlHandler(nullptr, TRUE);  // the sender goes on
  return AttachConsole(static_cast<DWORD>(std::stoul(w[0]))) &&
                 GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0)
             ? 0
             : 1;
});

}  // namespace

ChildBody::ChildBody(const char* name, Body body) { Bodies()[name] = body; }

void SayLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

ChildProgram::ChildProgram(const std::string& name,
                           std::vector<std::string> words)
    : ChildProgram([&] {
        words.insert(words.begin(), {ProgramPath(), "--child", name});
        return words;
      }()) {}

ChildProgram::ChildProgram(const std::vector<std::string>& words) {
  HANDLE ends[2];
  Expect(CreatePipe(&ends[0], &ends[1], nullptr, 0), "CreatePipe");
  output_ = Owned(ends[0]);
  const UniqueFd writer = Owned(ends[1]);
  SetHandleInformation(ends[1], HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
  job_ = Owned(CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  SetInformationJobObject(HandleOf(job_.get()),
                          JobObjectExtendedLimitInformation, &limits,
                          sizeof(limits));
  std::string line;
  for (const std::string& word : words) line += "\"" + word + "\" ";
  STARTUPINFOW start = {};
  start.cb = sizeof(start);
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdOutput = ends[1];
  start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  PROCESS_INFORMATION made = {};
  Expect(CreateProcessW(Wide(words[0]).c_str(), Wide(line).data(), nullptr,
                        nullptr, TRUE, CREATE_NO_WINDOW, nullptr, nullptr,
                        &start, &made),
         "CreateProcess");
  AssignProcessToJobObject(HandleOf(job_.get()), made.hProcess);
  CloseHandle(made.hThread);
  process_ = Owned(made.hProcess);
}

std::string ChildProgram::ReadLine() {
  std::string line;
  char byte = 0;
  DWORD count = 0;
  while (ReadFile(HandleOf(output_.get()), &byte, 1, &count, nullptr) &&
         count == 1 && byte != '\n') {
    if (byte != '\r') line += byte;
  }
  return line;
}

void ChildProgram::Kill() {
  TerminateProcess(HandleOf(process_.get()), kKilled);
  WaitForSingleObject(HandleOf(process_.get()), INFINITE);
}

void ChildProgram::Interrupt() {
  const DWORD id = GetProcessId(HandleOf(process_.get()));
  ChildProgram sender("interrupt", {std::to_string(id)});
  Expect(sender.ExitCode() == 0, "interrupt");
}

void ChildProgram::Suspend() { NtSuspendProcess(HandleOf(process_.get())); }
void ChildProgram::Resume() { NtResumeProcess(HandleOf(process_.get())); }

bool ChildProgram::HasEnded() const {
  return WaitForSingleObject(HandleOf(process_.get()), 0) == WAIT_OBJECT_0;
}

int ChildProgram::ExitCode() {
  WaitForSingleObject(HandleOf(process_.get()), INFINITE);
  DWORD code = 0;
  GetExitCodeProcess(HandleOf(process_.get()), &code);
  return static_cast<int>(code);
}

}  // namespace tandem

// Of every test on Windows.
int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "--child") {
    return tandem::Bodies().at(argv[2])({argv + 3, argv + argc});
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
