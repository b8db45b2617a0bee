#include "client_py/bindings/errors.h"

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"
#include "transport/base/error.h"

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

// Messages quote bytes of the region: anything may be among them.
py::object Decoded(absl::string_view text) {
  return py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace

void Raise(const absl::Status& status, absl::string_view region) {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  const auto code = static_cast<uint32_t>(CodeOf(status));
  absl::string_view python_class = "TandemError";
  for (const Row& row : kRows) {
    if (row.number == code) python_class = row.python_class;
  }
  const py::object error =
      py::module_::import("tandem.errors")
          .attr("from_native")(Str(python_class), Decoded(status.message()),
                               Str(region));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())),
                  error.ptr());
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
