// Guarded: what an engine throws, as a status.
//
// Data flow: a call into an engine, its ports or what draws it -> its result,
// or kEngineFailed with the exception's text. Owns nothing; any thread calls.
//
//   absl::Status drawn = Guarded([&] { return source->Draw(place, tile); });

#ifndef TANDEM_ENGINE_ADAPTER_BASE_GUARDED_H_
#define TANDEM_ENGINE_ADAPTER_BASE_GUARDED_H_

#include <cxxabi.h>

#include <exception>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

namespace tandem {

// `call` gives an absl::Status or StatusOr. Tandem itself throws nothing; for
// the boundaries behind which there is code that may, want of memory included.
template <typename Call>
auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("the engine threw: ", error.what()));
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is cancelled: that must not be stopped
  } catch (...) {
    return MakeError(ErrorCode::kEngineFailed,
                     "the engine threw what is no std::exception");
  }
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_BASE_GUARDED_H_
