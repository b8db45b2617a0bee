// Tandem itself, as rows of the benchmark:
//
//   sides_<strategy>  ClientSide and EngineSide, called directly
//   host_<strategy>   ClientSide, and an Engine driven by EngineHost
//
// where <strategy> is spin, adaptive or block, on both sides.
// Data flow: as in row.h. Ownership: the caller's.
//
//   std::unique_ptr<Row> row = MakeTandemRow("host_adaptive", options);

#ifndef TANDEM_TESTS_BENCHMARK_TANDEM_ROWS_H_
#define TANDEM_TESTS_BENCHMARK_TANDEM_ROWS_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "tests/benchmark/row.h"

namespace tandem {

// Null for an unknown name. SIGTERM and SIGINT end Serve.
std::unique_ptr<Row> MakeTandemRow(absl::string_view name,
                                   const RowOptions& options);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_TANDEM_ROWS_H_
