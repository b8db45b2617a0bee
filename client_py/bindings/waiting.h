// Waits without the GIL, in which Python handles its signals.
//
// Data flow: a wait in C++ -> Python's signal handlers -> what they raised.
// Ownership: none; all but PythonInterrupts need the GIL.
//
//   const ErrorCode code = WithoutGil([&] { return client.Recv(deadline); });
//   if (code != ErrorCode::kOk) ...
//   RaiseWhatPythonRaised();

#ifndef TANDEM_CLIENT_PY_BINDINGS_WAITING_H_
#define TANDEM_CLIENT_PY_BINDINGS_WAITING_H_

#include <pybind11/pybind11.h>

#include <type_traits>

namespace tandem {

// Calls without the GIL. Not by gil_scoped_release: at the interpreter's exit
// Python ends a daemon thread that wants the GIL back by unwinding it, which a
// destructor must not let through.
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

// Runs Python's signal handlers; true if one raised. The exception stays with
// the thread, for Raise. Takes the GIL.
bool PythonInterrupts();

// To be called after every wait: a handler may have raised although the wait
// was successful.
void RaiseWhatPythonRaised();

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_WAITING_H_
