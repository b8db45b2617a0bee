// TaskSetup: the arguments of a task's constructor: options and model. It
// records the first requirement that the model does not meet.
//
// Data flow: options, model -> TaskSetup -> a task's constructor -> status.
// Ownership: the code that makes the task destroys it afterwards.
//
//   explicit Hopper(TaskSetup& setup)
//       : Task(setup), weight_(setup.options().Number("ctrl_cost_weight", 1)) {
//     setup.NeedPositions(3);
//   }

#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/core/task_options.h"

namespace tandem {

// A task reads all its options and states all its requirements in its
// constructor. status() is the first failure.
class TaskSetup {
 public:
  // `path` is the model file's, for error texts.
  TaskSetup(std::shared_ptr<const mjModel> model, std::string path,
            uint32_t frame_skip, TaskOptions* options)
      : model_(std::move(model)),
        path_(std::move(path)),
        frame_skip_(frame_skip),
        options_(options) {}

  TaskOptions& options() { return *options_; }
  const mjModel& model() const { return *model_; }
  const std::shared_ptr<const mjModel>& shared_model() const { return model_; }
  uint32_t frame_skip() const { return frame_skip_; }

  // Require `found`, one of the model's sizes, to be at least `least`, or to be
  // `expected`.
  void NeedAtLeast(int64_t least, int64_t found, absl::string_view what);
  void NeedExactly(int64_t expected, int64_t found, absl::string_view what);
  void NeedPositions(int64_t least) {
    NeedAtLeast(least, model_->nq, "positions (nq)");
  }

  // Requires a body of that name. Returns its id, or 0 after a failure.
  int Body(const std::string& name);
  // As Body; digits are the body's index.
  int BodyOrIndex(const std::string& name_or_index);
  // Returns a keyframe's index. `name_or_index` as for BodyOrIndex; "": -1.
  int Keyframe(const std::string& name_or_index);

  // kInvalidArgument: the model lacks something. The text has its path.
  const absl::Status& status() const { return status_; }

 private:
  void Refuse(absl::string_view expected, absl::string_view found);

  std::shared_ptr<const mjModel> model_;
  std::string path_;
  uint32_t frame_skip_;
  TaskOptions* options_;
  absl::Status status_;
};

}  // namespace tandem
