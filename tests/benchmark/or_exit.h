// Require, RequireCall, Got, Fail: end the program with a line on stderr if a
// condition does not hold, in any thread.
//
// Data flow: a result -> the same result, or stderr and an exit code.
//
//   ClientSide side = Got(ClientSide::Attach(name, {}));
//   Require(side.plan().num_envs > 1, "expected two environments or more");
//   RequireCall(pipe(ends) == 0, "pipe");

#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem {

[[noreturn]] inline void Fail(absl::string_view text, int exit_code = 1) {
  std::fprintf(stderr, "%s\n", std::string(text).c_str());
  std::_Exit(exit_code);  // other threads run until then
}

inline void Require(bool holds, absl::string_view text) {
  if (!holds) Fail(text);
}

// For a system call or a function that sets errno; the line contains errno.
inline void RequireCall(bool worked, absl::string_view name) {
  if (!worked) {
    Fail(absl::StrCat(name,
                      ": expected it to work, found: ", std::strerror(errno)));
  }
}

template <typename T>
T Got(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status().message());
  return *std::move(value);
}

}  // namespace tandem
