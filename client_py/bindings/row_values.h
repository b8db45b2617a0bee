// RowValues: the observation or action of each environment, in the rows of
// NumPy arrays.
//
// Data flow: what env.reset and env.step return -> a row; a row -> what
// env.step gets. Values of a space with one field are copied here, if they have
// the field's type and shape. All others go through the Python object, an
// Observations or Actions of tandem.spaces.batches.
// Ownership: EnvRows has three. All calls need the GIL.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "client_py/bindings/numpy_arrays.h"
#include "schema/layout/field.h"

namespace tandem {

class RowValues {
 public:
  // `values` has `array`, the one field's array or None. Raises what `array`
  // raises, and InvalidArgument if the array has another number of rows.
  RowValues(pybind11::object values, size_t rows);

  // Raises what `write_row` raises, also if the array is not writable; the row
  // may then be partly written.
  void Write(size_t row, PyObject* value);

  // Returns a new object, or one that cannot change. Raises what `row` raises.
  pybind11::object Read(size_t row);

 private:
  // The space's one field.
  struct Field {
    pybind11::object keeper;
    char* data;
    bool writable;
    size_t value_bytes;
    FieldType type;
    const NumpyType* numpy;
    std::vector<pybind11::ssize_t> shape;  // of one row
  };

  static std::optional<Field> FieldOf(const pybind11::object& array,
                                      size_t rows);
  bool TryWrite(char* place, PyObject* value) const;
  bool TryWriteInt(char* place, PyObject* value) const;
  pybind11::object Number(const char* place);

  pybind11::object values_;
  pybind11::str write_row_;
  pybind11::str row_;
  std::optional<Field> field_;
  // numpy.int64 objects of the numbers from 0: environments get the same
  // objects in each step.
  std::array<pybind11::object, 256> numbers_;
};

}  // namespace tandem
