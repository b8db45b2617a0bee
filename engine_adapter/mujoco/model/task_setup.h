// TaskSetup: what a task is made of: its options, its model, and what it says
// the model lacks.
//
// Data flow: options, model -> TaskSetup -> a task's constructor -> status.
// Ownership: the code that makes the task; it lives as long as that takes.
//
//   explicit Hopper(TaskSetup& setup)
//       : Task(setup), weight_(setup.options().Number("ctrl_cost_weight", 1)) {
//     setup.NeedPositions(3);
//   }

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_TASK_SETUP_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_TASK_SETUP_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/core/task_options.h"

namespace tandem {

// A task reads all its options and states all its needs in its constructor; the
// first one unmet is status().
class TaskSetup {
 public:
  // `path` is the model's, for error texts.
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

  // Needs `found`, one of the model's sizes, to be at least or exactly so much.
  void NeedAtLeast(int64_t least, int64_t found, absl::string_view what);
  void NeedExactly(int64_t expected, int64_t found, absl::string_view what);
  void NeedPositions(int64_t least) {
    NeedAtLeast(least, model_->nq, "positions (nq)");
  }

  // Needs a body of that name: its id, or 0.
  int Body(const std::string& name);
  // Needs the body that an option names, or gives as an index in digits.
  int BodyOrIndex(const std::string& name_or_index);

  // kInvalidArgument for what the model lacks, with its path.
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

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_TASK_SETUP_H_
