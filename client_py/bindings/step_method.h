// StepMethod: `SharedMemoryClient.step`, implemented as a native CPython
// method.
//
// Data flow: interpreter -> Step -> NativeClient::Step.
// A method in Python that calls one of pybind11's costs some 100 ns a call, a
// third of a small step; a method of a C type, some 20. This type is a base of
// SharedMemoryClient and has nothing but that method.
//
//   module.attr("StepMethod") = MakeStepMethodType();

#ifndef TANDEM_CLIENT_PY_BINDINGS_STEP_METHOD_H_
#define TANDEM_CLIENT_PY_BINDINGS_STEP_METHOD_H_

#include <pybind11/pybind11.h>

namespace tandem {

// Returns the type: StepMethod(native), with step(actions). It keeps its
// NativeClient alive. Raises Python's errors of the type's creation.
pybind11::object MakeStepMethodType();

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_STEP_METHOD_H_
