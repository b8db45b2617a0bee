// Require, Got, Fail: a program that ends with a line on stderr as soon as
// something is not as it has to be, whichever thread finds it.
//
// Data flow: what was found -> the same, or stderr and exit code 1.
//
//   ClientSide side = Got(ClientSide::Attach(name, {}));
//   Require(side.plan().num_envs > 1, "expected two environments or more");

#ifndef TANDEM_TESTS_BENCHMARK_OR_EXIT_H_
#define TANDEM_TESTS_BENCHMARK_OR_EXIT_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

[[noreturn]] inline void Fail(absl::string_view text) {
  std::fprintf(stderr, "%s\n", std::string(text).c_str());
  std::_Exit(1);  // other threads go on until then
}

inline void Require(bool holds, absl::string_view text) {
  if (!holds) Fail(text);
}

template <typename T>
T Got(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status().message());
  return *std::move(value);
}

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_OR_EXIT_H_
