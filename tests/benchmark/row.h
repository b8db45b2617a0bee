// Row: one way of stepping an engine in another process, as the benchmark
// measures it.
//
// Data flow: the constructor makes what both processes inherit -> fork -> the
// child calls Serve, the parent Connect, then Exchange over and over; SIGTERM
// ends the child.
//
//   std::unique_ptr<Row> row = MakeRow("futex", options);
//   if (fork() == 0) { row->Serve(); _exit(0); }
//   row->Connect();
//   Results results = row->Exchange(actions);

#ifndef TANDEM_TESTS_BENCHMARK_ROW_H_
#define TANDEM_TESTS_BENCHMARK_ROW_H_

#include <string>

#include "tests/benchmark/payload.h"

namespace tandem {

struct RowOptions {
  Size size;
  std::string region;  // name of the region, or of a socket
};

// Exit code of a row that this machine cannot or may not run.
constexpr int kUnavailable = 69;

// A failure ends the process with a line on stderr: there is nothing else that
// a benchmark could do about it.
class Row {
 public:
  Row() = default;
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  virtual ~Row() = default;

  // Engine's process: serves until SIGTERM, which ends the process or makes
  // this return.
  virtual void Serve() = 0;
  // Client's process: from here on Exchange works.
  virtual void Connect() {}
  // Client's process: hands over `actions`, private memory of the client, and
  // waits for their results, which stay valid until the next call.
  virtual Results Exchange(const float* actions) = 0;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_ROW_H_
