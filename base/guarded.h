// Guarded: converts an engine's exceptions into errors.
//
// Data flow: a call of an engine, its ports or its frame source -> its result,
// or the exception as an error: the status of an absl::BadStatusOrAccess, which
// functions without a status throw; otherwise kEngineFailed with the text. Owns
// nothing; any thread may call it.
//
//   absl::Status drawn = Guarded([&] { return source->Draw(place, tile); });

#ifndef TANDEM_BASE_GUARDED_H_
#define TANDEM_BASE_GUARDED_H_

#include <cxxabi.h>

#include <exception>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {

// `call` returns an absl::Status or StatusOr. Tandem's own code throws nothing.
// Tandem uses Guarded where it calls code that may throw, std::bad_alloc
// included.
template <typename Call>
auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const absl::BadStatusOrAccess& error) {
    return error.status();
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("the engine threw: ", error.what()));
  } catch (abi::__forced_unwind&) {
    throw;  // a cancellation of the thread; it must continue
  } catch (...) {
    return MakeError(ErrorCode::kEngineFailed,
                     "the engine threw an object that is no std::exception");
  }
}

}  // namespace tandem

#endif  // TANDEM_BASE_GUARDED_H_
