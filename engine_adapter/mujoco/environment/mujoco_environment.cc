#include "engine_adapter/mujoco/environment/mujoco_environment.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/mujoco/model/row_writer.h"

namespace tandem {
namespace {

// An error leaves MuJoCo's state and stack incomplete. Only mj_resetData
// repairs them.
template <typename Call>
auto ResettingOnError(const mjModel& model, mjData* data, const Call& call) {
  try {
    return call();
  } catch (...) {
    mj_resetData(&model, data);
    throw;
  }
}

// A wrong count would put later values into columns with other names.
void CheckCount(size_t found, size_t expected, const char* what) {
  if (found == expected) return;
  throw std::logic_error(absl::StrCat("expected a task that puts the same ",
                                      expected, " ", what, " each time, found ",
                                      found, "; fix the task"));
}

}  // namespace

void MujocoEnvironment::Reset(EnvRandom& random, const EnvironmentRow& row) {
  DrawModel();
  std::ranges::fill(action_, 0.0F);
  const mjModel& model = task_->model();
  mj_resetData(&model, data_.get());
  ResettingOnError(model, data_.get(), [&] {
    task_->Reset(data_.get(), random);
    if (randomization_ != nullptr) {
      randomization_->ShakeState(model, data_.get());
    }
    mj_forward(&model, data_.get());
    PutRow(row);
  });
}

StepOutcome MujocoEnvironment::Step(std::span<const float> actions,
                                    const EnvironmentRow& row) {
  const mjModel& model = task_->model();
  return ResettingOnError(model, data_.get(), [&] {
    TakeActions(actions);
    if (randomization_ != nullptr) {
      randomization_->BeforeStep(model, data_.get());
    }
    InfoWriter step_infos(row.infos.subspan(reset_infos_));
    const StepOutcome outcome = task_->Step(action_, data_.get(), step_infos);
    CheckCount(step_infos.count(), row.infos.size() - reset_infos_,
               "infos of a step");
    if (randomization_ != nullptr) randomization_->AfterStep(model, *data_);
    PutRow(row);
    return outcome;
  });
}

void MujocoEnvironment::ClearClientState() {
  next_randomization_.reset();
  ReturnToSharedModel();
  std::ranges::fill(set_controls_, std::nullopt);
  any_set_ = false;
}

void MujocoEnvironment::ReturnToSharedModel() {
  randomization_.reset();
  task_ = shared_task_;
  own_model_.reset();
  is_model_changed_ = false;
}

absl::StatusOr<mjModel*> MujocoEnvironment::OwnModel() {
  TANDEM_RETURN_IF_ERROR(MakeOwnModel());
  is_model_changed_ = true;
  return own_model_.get();
}

absl::Status MujocoEnvironment::MakeOwnModel() {
  if (own_model_ != nullptr) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<mjModel> model,
                          CopyModel(task_->model()));
  task_ = make_task_(model);
  own_model_ = std::move(model);
  return absl::OkStatus();
}

// Call it before mj_resetData: the draws use the state as scratch memory.
void MujocoEnvironment::DrawModel() {
  if (next_randomization_ != nullptr) {
    randomization_ = std::move(next_randomization_);
  }
  if (randomization_ == nullptr) return;
  if (randomization_->is_empty() && !is_model_changed_) {
    ReturnToSharedModel();
    return;
  }
  ResettingOnError(*own_model_, data_.get(), [&] {
    randomization_->DrawModel(own_model_.get(), data_.get());
  });
}

void MujocoEnvironment::TakeActions(std::span<const float> actions) {
  std::ranges::copy(actions, action_.begin());
  if (any_set_) {
    for (size_t i = 0; i < action_.size(); ++i) {
      action_[i] = Control(i);
      set_controls_[i].reset();
    }
    any_set_ = false;
  }
  const auto bad = std::ranges::find_if(action_, [](float value) {
    return !(std::abs(static_cast<mjtNum>(value)) <= mjMAXVAL);
  });
  if (bad != action_.end()) {
    mj_warning(data_.get(), mjWARN_BADCTRL,
               static_cast<int>(bad - action_.begin()));
    std::ranges::fill(action_, 0.0F);
  }
  std::ranges::copy(action_, data_->ctrl);
}

void MujocoEnvironment::PutRow(const EnvironmentRow& row) const {
  InfoWriter infos(row.infos.first(reset_infos_));
  task_->PutInfosOfState(*data_, infos);
  CheckCount(infos.count(), reset_infos_, "infos of a reset");
  ObsWriter obs(row.obs);
  task_->Observe(*data_, obs);
  if (task_->FollowsVelocityCommand()) {
    PutVelocityCommand(randomization_ != nullptr
                           ? randomization_->velocity_command()
                           : kNoVelocityCommand,
                       obs);
  }
  CheckCount(obs.count(), row.obs.size(), "observations");
}

}  // namespace tandem
