// StepMethod: `SharedMemoryClient.step`, implemented as a native CPython
// method.
//
// Data flow: interpreter -> Step -> NativeClient::Step.
// A Python method that calls a pybind11 method costs about 100 ns, a third of a
// small step. A method of a C type costs about 20 ns. This type is a base class
// of SharedMemoryClient and has this method only.
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
