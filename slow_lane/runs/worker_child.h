// WorkerChild: what the forked child does until it is the worker.
//
// Data flow: LaunchWorker prepares it -> fork -> Become: session, descriptors,
// signals, the record, working directory, exec; or a report through a pipe,
// which exec closes.
// Between fork and exec of a program with threads only async-signal-safe
// functions may be called: nothing here allocates or locks.
//
//   const WorkerChild child = {.input = fd, ...};
//   if (fork() == 0) child.Become();

#ifndef TANDEM_SLOW_LANE_RUNS_WORKER_CHILD_H_
#define TANDEM_SLOW_LANE_RUNS_WORKER_CHILD_H_

#include <sys/resource.h>

namespace tandem::slow_lane {

struct WorkerChild {
  // The first byte of a report; a text follows.
  enum class Outcome : char {
    kDispatchedBefore = 'd',  // the record was there
    kNotDispatched = 'n',     // no record was made: it may be tried again
    kNotExecuted = 'x',       // the record was made, and `exit` too
  };

  // Descriptors given are this or above: 0 to 3 are filled in the child.
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
  // The beginning of a text; the system's word for the error and argv[0]
  // follow.
  const char* no_program;
  // Each ends with a null pointer.
  char* const* programs;  // tried one after the other
  char* const* argv;
  char* const* envp;

  // In the child, with all signals blocked.
  [[noreturn]] void Become() const;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_WORKER_CHILD_H_
