// iceoryx 2.0.3, as rows of the benchmark:
//
//   iceoryx_spin   requests and responses; both sides poll for them
//   iceoryx_block  the same; both sides sleep in a WaitSet
//
// Measured zero-copy: each side writes into a chunk that it borrowed, and the
// client reads the results where the engine wrote them. Polling is iceoryx's
// fastest way; a WaitSet is what its documentation leads to. iceoryx needs a
// daemon, RouDi: a row starts one of its own, without monitoring and with
// memory for this size, and kills it at the end.
//
// RouDi's names are the same for the whole machine, and it leaves files in
// /dev/shm and /tmp when a program that used it was killed. So a row has a
// /dev/shm and a /tmp of its own (a mount namespace), which end with its
// processes however they end, and which let two benchmarks run side by side.
//
// Data flow: as in row.h. Ownership: the caller's.
//
//   std::unique_ptr<Row> row = MakeIceoryxRow("iceoryx_spin", options);

#ifndef TANDEM_TESTS_BENCHMARK_ICEORYX_ROWS_H_
#define TANDEM_TESTS_BENCHMARK_ICEORYX_ROWS_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "tests/benchmark/row.h"

namespace tandem {

// Null for an unknown name. Call before the fork, with one thread: puts this
// process into a mount namespace of its own and starts RouDi, its child. Where
// the system forbids that, ends the process with kUnavailable (row.h).
std::unique_ptr<Row> MakeIceoryxRow(absl::string_view name,
                                    const RowOptions& options);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_ICEORYX_ROWS_H_
