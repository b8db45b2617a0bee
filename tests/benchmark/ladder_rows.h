// From bare spinning to a session, one ingredient at a time, to see what each
// costs. All lie where the LRBC header has them.
//
//   ladder_0  spinning on action_seq and frame_seq, data in place
//   ladder_1  + doorbells: fence, look for sleepers
//   ladder_2  + the clock, read while waiting and after each store
//   ladder_3  + phases, stored twice by each side
//   ladder_4  + step times, recorded by each side
//   ladder_5  + the client's guard against a second thread
//   ladder_6  + actions checked for finite values; reset flags cleared
//
// Data flow: as in row.h. What is left to sides_spin is the states and calls.
//
//   std::unique_ptr<Row> row = MakeLadderRow("ladder_3", options);

#ifndef TANDEM_TESTS_BENCHMARK_LADDER_ROWS_H_
#define TANDEM_TESTS_BENCHMARK_LADDER_ROWS_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "tests/benchmark/row.h"

namespace tandem {

// Null for an unknown name. Call before the fork.
std::unique_ptr<Row> MakeLadderRow(absl::string_view name,
                                   const RowOptions& options);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_LADDER_ROWS_H_
