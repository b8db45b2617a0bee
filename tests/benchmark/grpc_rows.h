// gRPC, as a row of the benchmark:
//
//   grpc  a unary call for each step, over a Unix socket
//
// Measured by the synchronous API on both sides, as its users call a server
// that has one client: one completion queue with one thread that polls it, no
// limit on the size of messages, the arrays as bytes, and messages that the
// client reuses. The socket's name is an abstract one, which leaves no file.
//
// Data flow: as in row.h. Ownership: the caller's.
//
//   std::unique_ptr<Row> row = MakeGrpcRow("grpc", options);

#ifndef TANDEM_TESTS_BENCHMARK_GRPC_ROWS_H_
#define TANDEM_TESTS_BENCHMARK_GRPC_ROWS_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "tests/benchmark/row.h"

namespace tandem {

// Null for an unknown name. Its engine is reached at unix-abstract:<region>,
// by clients of other languages too. Nothing of gRPC runs before Serve or
// Connect: it cannot be forked.
std::unique_ptr<Row> MakeGrpcRow(absl::string_view name,
                                 const RowOptions& options);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_GRPC_ROWS_H_
