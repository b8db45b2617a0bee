// PythonAdaptor: calls of an engine's Python object from threads without the
// GIL, and its exceptions as errors.
//
// Data flow: the stepping thread -> the GIL -> tandem.serving.adaptor.Adaptor
// -> the engine; an exception -> tandem.serving.failures -> absl::Status.
// Ownership: PythonEngine owns it; its ports use it. All calls come from the
// stepping thread.

#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "base/guarded.h"

namespace tandem {

// Holds the GIL. At the interpreter's exit Python may end a daemon thread in
// the constructor, by unwinding it.
class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  const PyGILState_STATE state_;
};

class PythonAdaptor {
 public:
  // Needs the GIL. `keeps_first`: an exception before SetOpened is kept for the
  // caller of serve, and is not logged.
  PythonAdaptor(pybind11::object object, bool keeps_first)
      : object_(std::move(object)), keeps_first_(keeps_first) {}
  // Takes the GIL.
  ~PythonAdaptor();
  PythonAdaptor(const PythonAdaptor&) = delete;
  PythonAdaptor& operator=(const PythonAdaptor&) = delete;

  // Needs the GIL.
  const pybind11::object& object() const { return object_; }

  // Calls `work` with the GIL. Returns its exception as an error: that of a
  // TandemError's class, otherwise kEngineFailed with the last line of the
  // traceback, which goes to the log. An exception that is no
  // Exception, such as KeyboardInterrupt, is kept, and stops the host.
  template <typename Work>
  absl::Status Call(const Work& work) {
    const Gil gil;
    try {
      work();
      failing_ = false;
      return absl::OkStatus();
    } catch (pybind11::error_already_set& error) {
      return Failed(error);
    }
  }

  // The same for interfaces without an error, as Guarded expects it.
  template <typename Work>
  void CallOrThrow(const Work& work) {
    ThrowUnlessOk(Call(work));
  }

  // The region has its name: from now on exceptions are logged.
  void SetOpened() { opened_ = true; }
  // `stop` is called at most once, after which the loop ends.
  void OnStop(std::function<void()> stop) { stop_ = std::move(stop); }

  // Runs Python's signal handlers, then `stopping`, if it is callable. Returns
  // whether one of them raised, which is kept, or the latter returned true.
  bool Interrupts(const pybind11::object& stopping);

  // Whether an exception is kept for the caller.
  bool keeps() const { return static_cast<bool>(kept_); }
  // Raises the kept exception, if there is one. Needs the GIL.
  void RaiseKept();

 private:
  absl::Status Failed(const pybind11::error_already_set& error);
  void Keep(const pybind11::object& exception);

  pybind11::object object_;
  pybind11::object kept_;
  const bool keeps_first_;
  bool opened_ = false;
  bool failing_ = false;  // the last call failed
  std::function<void()> stop_;
};

// Returns the error of an exception, with the traceback in the log. Needs the
// GIL.
absl::Status StatusOf(const pybind11::error_already_set& error);

}  // namespace tandem
