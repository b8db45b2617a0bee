#include "client_py/bindings/errors.h"

#include <cstdint>

#include "schema/layout/error_codes.h"

namespace tandem {
namespace py = pybind11;
namespace {

struct Row {
  uint32_t number;
  absl::string_view name;
  absl::StatusCode absl_code;
  absl::string_view python_class;
  absl::string_view meaning;
};

constexpr Row kRows[] = {
#define TANDEM_ROW(number, name, absl_code, python_class, meaning) \
  {number, #name, absl::StatusCode::absl_code, #python_class, meaning},
    TANDEM_ERROR_TABLE(TANDEM_ROW)
#undef TANDEM_ROW
};

py::str Str(absl::string_view text) { return {text.data(), text.size()}; }

// Messages quote bytes of the region, which may be invalid UTF-8.
PyObject* Decoded(absl::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                              "backslashreplace");
}

}  // namespace

void Raise(const absl::Status& status, absl::string_view region) {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  const auto code = static_cast<uint32_t>(CodeOf(status));
  absl::string_view python_class = "TandemError";
  for (const Row& row : kRows) {
    if (row.number == code) python_class = row.python_class;
  }
  // Plain pointers: at exit the interpreter may unwind a daemon thread here,
  // without the GIL. Destructors of py::object need the GIL.
  const absl::string_view message = status.message();
  PyObject* const arguments[] = {Decoded(python_class), Decoded(message),
                                 Decoded(region)};
  PyObject* const module = PyImport_ImportModule("tandem.errors");
  PyObject* error = nullptr;
  if (module != nullptr && arguments[0] != nullptr && arguments[1] != nullptr &&
      arguments[2] != nullptr) {
    error = PyObject_CallMethod(module, "from_native", "OOO", arguments[0],
                                arguments[1], arguments[2]);
  }
  if (error != nullptr) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  }
  for (PyObject* const argument : arguments) Py_XDECREF(argument);
  Py_XDECREF(module);
  Py_XDECREF(error);
  throw py::error_already_set();
}

py::tuple ErrorTable() {
  py::list rows;
  for (const Row& row : kRows) {
    const py::object python_class = row.python_class == "None"
                                        ? py::object(py::none())
                                        : py::object(Str(row.python_class));
    rows.append(py::make_tuple(row.number, Str(row.name),
                               static_cast<int>(row.absl_code), python_class,
                               Str(row.meaning)));
  }
  return py::tuple(rows);
}

}  // namespace tandem
