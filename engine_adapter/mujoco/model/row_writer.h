// ObsWriter, InfoWriter: write one environment's row, value by value.
//
// Data flow: mjData -> Task -> writer -> the region. Once, before the region
// exists: Task -> writer -> names of observations, fields of infos.
// Ownership: a writer is made for one call. The caller owns its targets.
//
//   obs.Put({"qvel", VelocityName}, {data.qvel, size_t(model.nv)});
//   infos.Put("reward_ctrl", -cost);

#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/task_description.h"

namespace tandem {

// The names of a group of values: "qvel/rootx", "qvel/rootz".
struct ObsLabel {
  const char* of;
  // Returns the second part of the name of array element `index`. nullptr: the
  // group is one value, and `of` is its name.
  std::string (*part)(const mjModel& model, int index) = nullptr;
  size_t first = 0;  // the first value's index in the array
};

// A value beyond the row's end is counted, but not written.
class ObsWriter {
 public:
  explicit ObsWriter(std::span<float> row) : row_(row) {}
  // Writes no values; appends the name of each value to `names`.
  ObsWriter(const mjModel* model, std::vector<std::string>* names)
      : model_(model), names_(names) {}

  void Put(const ObsLabel& label, mjtNum value) {
    Put(label, std::span(&value, 1));
  }
  void Put(const ObsLabel& label, std::span<const mjtNum> values) {
    for (const mjtNum value : values) {
      if (count_ < row_.size()) row_[count_] = static_cast<float>(value);
      ++count_;
    }
    if (names_ != nullptr) Name(label, values.size());
  }
  size_t count() const { return count_; }

 private:
  void Name(const ObsLabel& label, size_t numbers) {
    for (size_t i = label.first; i < label.first + numbers; ++i) {
      names_->push_back(
          label.part == nullptr
              ? label.of
              : absl::StrCat(label.of, "/",
                             label.part(*model_, static_cast<int>(i))));
    }
  }

  std::span<float> row_;
  size_t count_ = 0;
  const mjModel* model_ = nullptr;
  std::vector<std::string>* names_ = nullptr;
};

// A task puts the same names, types and lengths in the same order in each call.
class InfoWriter {
 public:
  explicit InfoWriter(std::span<double> row) : row_(row) {}
  // Writes no values; appends each field to `fields`.
  InfoWriter(std::vector<InfoField>* fields, bool at_reset)
      : fields_(fields), at_reset_(at_reset) {}

  // The type of `value` is the type in Gymnasium's infos.
  void Put(const char* name, double value) {
    Field(name, NumberType::kFloat64);
    Column(value);
  }
  void Put(const char* name, float value) {
    Field(name, NumberType::kFloat32);
    Column(static_cast<double>(value));
  }
  void Put(const char* name, int64_t value) {
    Field(name, NumberType::kInt64);
    Column(static_cast<double>(value));
  }
  void Put(const char* name, std::span<const mjtNum> values) {
    Field(name, NumberType::kFloat64);
    if (fields_ != nullptr) {
      fields_->back().length = static_cast<uint32_t>(values.size());
    }
    for (const mjtNum value : values) Column(value);
  }
  size_t count() const { return at_; }

 private:
  void Field(const char* name, NumberType type) {
    if (fields_ == nullptr) return;
    fields_->push_back({.name = name, .type = type, .at_reset = at_reset_});
  }
  void Column(double value) {
    if (at_ < row_.size()) row_[at_] = value;
    ++at_;
  }

  std::span<double> row_;
  size_t at_ = 0;
  std::vector<InfoField>* fields_ = nullptr;
  bool at_reset_ = false;
};

}  // namespace tandem
