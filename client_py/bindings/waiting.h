// Waits without the GIL, during which Python's signal handlers run.
//
// Data flow: a wait in C++ -> Python's signal handlers -> their exception.
// Ownership: none. All except PythonInterrupts need the GIL.
//
//   const ErrorCode code = WithoutGil([&] { return client.Recv(deadline); });
//   if (code != ErrorCode::kOk) ...
//   RaiseWhatPythonRaised();

#pragma once

#include <pybind11/pybind11.h>

#include <type_traits>

namespace tandem {

// Calls without the GIL. It does not use gil_scoped_release: at the
// interpreter's exit Python ends a daemon thread that requests the GIL by
// unwinding it, and a destructor must not pass that unwinding on.
template <typename Call>
auto WithoutGil(Call call) {
  PyThreadState* const thread = PyEval_SaveThread();
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    PyEval_RestoreThread(thread);
  } else {
    auto result = call();
    PyEval_RestoreThread(thread);
    return result;
  }
}

// Runs Python's signal handlers; returns true if one raised. The thread keeps
// the exception for Raise. Takes the GIL.
inline bool PythonInterrupts() {
  const PyGILState_STATE gil = PyGILState_Ensure();
  const bool interrupts = PyErr_CheckSignals() != 0;
  PyGILState_Release(gil);
  return interrupts;
}

// The caller must call it after every wait: a handler may have raised although
// the wait succeeded.
inline void RaiseWhatPythonRaised() {
  if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
}

}  // namespace tandem
