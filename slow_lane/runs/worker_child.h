// WorkerChild: the steps of the forked child until exec.
//
// Data flow: LaunchWorker prepares it -> fork -> Become: session, descriptors,
// signals, the record, working directory, exec; or a report through a pipe,
// which exec closes. A program with threads may call only async-signal-safe
// functions between fork and exec. So no code here allocates or locks.

#pragma once

#include <sys/resource.h>

namespace tandem::slow_lane {

struct WorkerChild {
  // The first byte of a report; a text follows.
  enum class Outcome : char {
    kDispatchedBefore = 'd',  // the record existed
    kNotDispatched = 'n',     // no record was made: a retry is possible
    kNotExecuted = 'x',       // the record and `exit` were made
  };

  // The given descriptors are at least this; the child assigns 0 to 3.
  static constexpr int kFirstFreeFd = 10;

  int input;
  int output;
  int errors;
  int report;
  rlim_t run_limit;  // RunToken::limit
  // Absolute paths.
  const char* folder;
  const char* worker_path;
  const char* exit_path;
  const char* boot_id;
  const char* working_directory;
  // The beginning of an error text; the system's error text and argv[0] follow.
  const char* no_program;
  // Each ends with a null pointer.
  char* const* programs;  // tried one after the other
  char* const* argv;
  char* const* envp;

  // Called in the child, with all signals blocked.
  [[noreturn]] void Become() const;
};

}  // namespace tandem::slow_lane
