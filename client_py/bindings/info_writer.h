// InfoWriter: writes the infos of one worker's environments into its info area.
//
// Data flow: the dict that an environment's reset or step returned -> the
// pattern of its keys and types -> columns; values without a column -> a pickle
// in the blob.
// Ownership: EnvRows has one. It is the area's only writer. All calls need the
// GIL. A dict whose pattern is known is written without an allocation, unless
// it has pickled values.

#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schema/layout/info_area.h"

namespace tandem {

// Legal call order: Begin, then for each row of the exchange BeginRow and Write
// (kFinal before kInfo). The area is then complete.
class InfoWriter {
 public:
  // Writes nothing: the trainer may still read a predecessor's infos. Raises
  // InvalidArgument if the area is too small, too large or not aligned.
  InfoWriter(std::span<std::byte> area, uint32_t rows, uint32_t first_env);
  InfoWriter(const InfoWriter&) = delete;
  InfoWriter& operator=(const InfoWriter&) = delete;

  // Begins an exchange: no row has an info. The first call begins a new log.
  void Begin();

  // The next calls are for this row, which is higher than the ones before.
  void BeginRow(uint32_t row);

  // Writes the row's info. Raises InvalidArgument if a value cannot be pickled,
  // if the blob has no room, or if `info` is not a mapping; then call ClearRow.
  void Write(InfoPart part, PyObject* info);

  // The row has no infos in this exchange.
  void ClearRow();

 private:
  // What a value is, without the value: this decides its column.
  struct ValueType {
    InfoValue value;
    FieldType type = FieldType{};
    std::vector<Py_ssize_t> shape = {};
    bool operator==(const ValueType&) const = default;
  };
  // A column as one pattern has it.
  struct Entry {
    pybind11::object key;
    ValueType type;
    uint32_t column;
    int type_number;       // of an array's elements
    PyTypeObject* scalar;  // the type of a kNumpy
    std::byte* values;     // of row 0; nullptr without values
    size_t value_bytes;
    Py_ssize_t items;  // of a dict
  };
  struct Pattern {
    std::vector<Entry> entries;
    Py_ssize_t items;  // of the whole info
  };
  struct Column {
    std::byte* values;
    size_t value_bytes;
  };
  // Patterns of one part.
  struct Part {
    // By the columns' numbers: the number of the pattern in the log.
    absl::flat_hash_map<std::vector<uint32_t>, uint32_t> numbers;
    // The most recently used first; at most kMostRecent.
    std::vector<std::pair<uint32_t, Pattern>> recent;
  };

  static ValueType TypeOf(PyObject* value);
  // Writes the values of a dict whose pattern is `pattern`. Returns false if
  // its pattern is another one; columns of the row may be overwritten. Adds
  // values for the blob to pickled_.
  bool TryPattern(const Pattern& pattern, PyObject* info);
  bool TryEntries(const Pattern& pattern, PyObject* dict, Py_ssize_t items,
                  size_t* next);
  bool TryValue(const Entry& entry, PyObject* value) const;
  // Returns the pattern of an info, which it adds to the log if it is new;
  // nullopt if the area cannot describe the info, or the log has no room.
  std::optional<std::pair<uint32_t, Pattern>> Describe(InfoPart part,
                                                       PyObject* info);
  bool DescribeItems(InfoPart part, PyObject* dict, const std::string& path,
                     uint32_t depth, Pattern* pattern);
  std::optional<uint32_t> ColumnOf(InfoPart part, const std::string& path,
                                   ValueType* type);
  // Returns the place of a new record's bytes, which are zero; nullptr if the
  // log has no room.
  std::byte* Append(uint64_t bytes);
  void SetWord(InfoPart part, uint32_t word);
  void Pickle(InfoPart part, PyObject* value);
  InfoAreaHeader* header() {
    return reinterpret_cast<InfoAreaHeader*>(area_.data());
  }
  uint32_t* Word(InfoPart part) {
    return words_ + (part == InfoPart::kFinal ? rows_ : 0) + row_;
  }

  const std::span<std::byte> area_;
  const uint32_t rows_;
  const uint32_t first_env_;
  const InfoAreaPlan plan_;
  bool begun_ = false;
  uint32_t* const words_;
  uint32_t row_ = 0;
  uint64_t log_end_;
  uint64_t blob_end_;
  uint64_t row_blob_ = 0;  // the blob's end before this row
  uint32_t patterns_ = 0;
  std::vector<Column> columns_;
  // By part, path and type.
  absl::flat_hash_map<std::string, uint32_t> column_numbers_;
  // By part and path: the number of array columns.
  absl::flat_hash_map<std::string, uint32_t> array_columns_;
  Part parts_[2];
  std::vector<PyObject*> pickled_;  // of the info in work; its dict owns them
  pybind11::object dumps_;
};

}  // namespace tandem
