// What Tandem is compared with, between two C++ processes:
//
//   alone        no second process: the engine's work, called
//   spin         bare spinning on two words; data in place in shared memory
//   spin_copied  the same; both sides copy between it and memory of their own
//   futex        data in place; each side sleeps at once, and is woken
//   socket       a Unix stream socket carries the data
//
// Data flow: as in row.h. Ownership: the caller's.
//
//   std::unique_ptr<Row> row = MakePeerRow("spin", options);

#ifndef TANDEM_TESTS_BENCHMARK_PEER_ROWS_H_
#define TANDEM_TESTS_BENCHMARK_PEER_ROWS_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "tests/benchmark/row.h"

namespace tandem {

// Null for an unknown name. Call before the fork.
std::unique_ptr<Row> MakePeerRow(absl::string_view name,
                                 const RowOptions& options);

// The engine's end of the socket row: answers actions on `socket` until the
// other end closes it. What a client of another language is measured against.
void ServeSocket(int socket, const Size& size);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_PEER_ROWS_H_
