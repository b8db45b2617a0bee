#include "client_py/bindings/waiting.h"

#include "absl/strings/str_cat.h"
#include "client_py/bindings/errors.h"
#include "schema/layout/error_codes.h"
#include "transport/base/error.h"

namespace tandem {

bool PythonInterrupts() {
  const PyGILState_STATE gil = PyGILState_Ensure();
  const bool interrupts = PyErr_CheckSignals() != 0;
  PyGILState_Release(gil);
  return interrupts;
}

void RaiseWhatPythonRaised() {
  if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
}

double CheckedTimeout(double timeout_secs, absl::string_view region) {
  if (timeout_secs >= 0) return timeout_secs;  // false for NaN
  Raise(MakeError(ErrorCode::kInvalidArgument,
                  absl::StrCat("timeout: expected seconds, 0 or more "
                               "(math.inf for no limit), found ",
                               timeout_secs)),
        region);
}

}  // namespace tandem
