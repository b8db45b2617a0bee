// Row: one way to step an engine in another process, for measurements by the
// benchmark.
//
//   spin         a bare spin on two words; the data in place in shared memory
//   futex        the same; each side sleeps at once, and is woken
//   socket       a Unix stream socket carries the data
//   grpc         a unary call for each step, over a Unix socket
//   host_<wait>  Tandem: ClientSide, and an Engine under an EngineHost; both
//                wait by spin, adaptive or block
//
// Data flow: Make...Row makes the objects that both processes inherit -> fork
// -> the child calls Serve; the parent calls Connect, then Exchange repeatedly;
// SIGTERM ends the child.
// Ownership: the caller owns the row.
//
//   std::unique_ptr<Row> row = MakePlainRow("futex", options);
//   if (fork() == 0) { row->Serve(); _exit(0); }
//   row->Connect();
//   Results results = row->Exchange(actions);

#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/benchmark/payload.h"

namespace tandem {

struct RowOptions {
  Size size;
  std::string region;  // name of the region, or of gRPC's socket
};

// A failure ends the process with a line on stderr.
class Row {
 public:
  Row() = default;
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  virtual ~Row() = default;

  // Engine's process: serves until SIGTERM, which ends the process or makes
  // this return.
  virtual void Serve() = 0;
  // Client's process: call before the first Exchange.
  virtual void Connect() {}
  // Client's process: hands over `actions`, private memory of the client, and
  // waits for the results, which are valid until the next call.
  virtual Results Exchange(const float* actions) = 0;
};

// Each returns null if the name is not one of its rows. Call before the fork:
// gRPC, which must not be forked, starts only in Serve or Connect.
std::unique_ptr<Row> MakePlainRow(absl::string_view name, const Size& size);
std::unique_ptr<Row> MakeTandemRow(absl::string_view name,
                                   const RowOptions& options);
// Clients in other languages reach its engine at unix-abstract:<region>.
std::unique_ptr<Row> MakeGrpcRow(absl::string_view name,
                                 const RowOptions& options);

// The engine of the row "socket": answers actions on `socket` until the other
// end closes it. Clients in other languages use it as well.
void ServeSocket(int socket, const Size& size);

}  // namespace tandem
