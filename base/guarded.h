// Guarded: converts an engine's exceptions into errors. ThrowUnlessOk: the
// error of a function of an engine's interface that returns no status.
//
// Data flow: a call of an engine, its ports or its frame source -> its result,
// or the exception as an error: the status that ThrowUnlessOk threw; otherwise
// kEngineFailed with the exception's text. Owns nothing; any thread may call
// both.
//
//   absl::Status drawn = Guarded([&] { return source->Draw(place, tile); });

#pragma once

#include <cxxabi.h>

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {

// A status as an exception. Guarded alone catches it.
class StatusError final : public std::exception {
 public:
  explicit StatusError(absl::Status status)
      : status_(std::move(status)), text_(status_.message()) {}
  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  absl::Status status_;
  std::string text_;
};

// Throws StatusError unless the status is OK.
inline void ThrowUnlessOk(absl::Status status) {
  if (!status.ok()) throw StatusError(std::move(status));
}

// `call` returns an absl::Status or StatusOr. Tandem's own code throws nothing.
// Tandem uses Guarded where it calls code that may throw, std::bad_alloc
// included. Another library's exceptions of a status, such as
// absl::BadStatusOrAccess, have no code of ours: they are kEngineFailed.
template <typename Call>
auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const StatusError& error) {
    return error.status();
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("the engine threw: ", error.what()));
#ifndef _LIBCPP_VERSION  // there a cancellation is no exception
  } catch (abi::__forced_unwind&) {
    throw;  // it must continue
#endif
  } catch (...) {
    return MakeError(ErrorCode::kEngineFailed,
                     "the engine threw an object that is no std::exception");
  }
}

}  // namespace tandem
