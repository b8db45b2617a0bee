// Raise: converts C++ errors to Python exceptions. No other code does.
//
// Data flow: absl::Status or ErrorCode -> its row of the error table -> the
// class of tandem.errors that the row names.
// Ownership: none; all calls need the GIL.

#pragma once

#include <pybind11/pybind11.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {

// Throws pybind11::error_already_set. The Python error is the pending one (such
// as a signal handler's KeyboardInterrupt), or else the row's class with the
// status's message. `region` is the region's name, or empty. `status` must not
// be OK.
[[noreturn]] void Raise(const absl::Status& status, absl::string_view region);

// Raises InvalidArgument.
[[noreturn]] inline void RaiseInvalid(absl::string_view message,
                                      absl::string_view region = "") {
  Raise(MakeError(ErrorCode::kInvalidArgument, message), region);
}

// Returns the table's rows: (number, name, absl code's number, class or None,
// meaning).
pybind11::tuple ErrorTable();

// Refuses a call on an object while another one runs: Python code in a call may
// release the GIL, and so another thread, or that code, may call the same
// object again. The object owns the flag; all calls need the GIL.
//
//   const OneCall call(&busy_);
class OneCall {
 public:
  // Raises ConcurrentUse if another call holds the flag.
  explicit OneCall(bool* busy) : busy_(busy) {
    if (*busy) {
      Raise(MakeError(ErrorCode::kConcurrentUse,
                      "expected one call at a time, found a call inside "
                      "another one"),
            "");
    }
    *busy = true;
  }
  OneCall(const OneCall&) = delete;
  OneCall& operator=(const OneCall&) = delete;
  ~OneCall() { *busy_ = false; }

 private:
  bool* busy_;
};

}  // namespace tandem
