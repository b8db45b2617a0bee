#include "client_py/engine_bindings/python_adaptor.h"

#include "base/error.h"

namespace tandem {
namespace py = pybind11;
namespace {

py::object ExceptionOf(const py::error_already_set& error) {
  py::object value = error.value();
  if (error.trace()) {
    PyException_SetTraceback(value.ptr(), error.trace().ptr());
  }
  return value;
}

// Returns the error that tandem.serving.failures.failure makes of an exception.
absl::Status Described(const py::object& exception, bool log, bool again) {
  try {
    const auto [code, text] = py::module_::import("tandem.serving.failures")
                                  .attr("failure")(exception, log, again)
                                  .cast<std::pair<uint32_t, std::string>>();
    return MakeError(static_cast<ErrorCode>(code), text);
  } catch (const std::exception&) {  // Python's, or of the cast
    return MakeError(
        ErrorCode::kEngineFailed,
        "the engine raised an exception whose text cannot be read");
  }
}

}  // namespace

PythonAdaptor::~PythonAdaptor() {
  const Gil gil;
  object_ = {};
  kept_ = {};
}

absl::Status PythonAdaptor::Failed(const py::error_already_set& error) {
  const py::object exception = ExceptionOf(error);
  const bool is_exception =
      PyErr_GivenExceptionMatches(exception.ptr(), PyExc_Exception) != 0;
  const bool keeps = !is_exception || (keeps_first_ && !opened_);
  if (keeps) Keep(exception);
  if (!is_exception && stop_ != nullptr) stop_();
  return Described(exception, /*log=*/!keeps,
                   /*again=*/std::exchange(failing_, true));
}

void PythonAdaptor::Keep(const py::object& exception) {
  if (!kept_) kept_ = exception;
}

bool PythonAdaptor::Interrupts(const py::object& stopping) {
  const Gil gil;
  try {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    return !stopping.is_none() && stopping().cast<bool>();
  } catch (py::error_already_set& error) {
    Keep(ExceptionOf(error));
    return true;
  }
}

void PythonAdaptor::RaiseKept() {
  if (!kept_) return;
  const py::object exception = std::exchange(kept_, py::object());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())),
                  exception.ptr());
  throw py::error_already_set();
}

absl::Status StatusOf(const py::error_already_set& error) {
  return Described(ExceptionOf(error), /*log=*/true, /*again=*/false);
}

}  // namespace tandem
