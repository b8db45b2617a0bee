// OneCall: refuses a call on an object while another one runs.
//
// Data flow: none. A call of Python code may release the GIL, and so another
// thread, or that code, may call the same object again.
// Ownership: the object owns the flag; all calls need the GIL.
//
//   const OneCall call(&busy_);

#ifndef TANDEM_CLIENT_PY_BINDINGS_ONE_CALL_H_
#define TANDEM_CLIENT_PY_BINDINGS_ONE_CALL_H_

#include "base/error.h"
#include "client_py/bindings/errors.h"

namespace tandem {

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

#endif  // TANDEM_CLIENT_PY_BINDINGS_ONE_CALL_H_
