#include "client_py/bindings/waiting.h"

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

}  // namespace tandem
