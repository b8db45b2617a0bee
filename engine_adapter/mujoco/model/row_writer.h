// ObsWriter, InfoWriter: one environment's row, written value by value.
//
// Data flow: mjData -> Task -> writer -> the region; or, once, before there is
// a region: Task -> writer -> which observations, which infos.
// Ownership: made for one call; what they write to belongs to the caller.
//
//   obs.Put({"qvel", VelocityName}, {data.qvel, size_t(model.nv)});
//   infos.Put("reward_ctrl", -cost);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_ROW_WRITER_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_ROW_WRITER_H_

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/core/task_description.h"

namespace tandem {

// What numbers are, from which each of them gets a name: "qvel/rootx".
struct ObsLabel {
  const char* of;
  // Names number `index` of the array that they are taken from; nullptr: there
  // is one number, and `of` names it.
  std::string (*part)(const mjModel& model, int index) = nullptr;
  size_t first = 0;  // the index of the first of them
};

// What does not fit the row is counted, not written.
class ObsWriter {
 public:
  explicit ObsWriter(std::span<float> row) : row_(row) {}
  // Writes nothing, but appends the name of each number that it is given.
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

// A task puts the same names, types and lengths in the same order each time.
class InfoWriter {
 public:
  explicit InfoWriter(std::span<double> row) : row_(row) {}
  // Writes nothing, but appends the fields that it is given.
  InfoWriter(std::vector<InfoField>* fields, bool at_reset)
      : fields_(fields), at_reset_(at_reset) {}

  // The value's type is the one that Gymnasium's has.
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

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_ROW_WRITER_H_
