#include "engine_adapter/mujoco/model/task_setup.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/mujoco/model/part_names.h"

namespace tandem {

void TaskSetup::NeedAtLeast(int64_t least, int64_t found,
                            absl::string_view what) {
  if (found >= least) return;
  Refuse(absl::StrCat("at least ", least, " ", what), absl::StrCat(found));
}

void TaskSetup::NeedExactly(int64_t expected, int64_t found,
                            absl::string_view what) {
  if (found == expected) return;
  Refuse(absl::StrCat(expected, " ", what), absl::StrCat(found));
}

int TaskSetup::Body(const std::string& name) {
  const int id = mj_name2id(model_.get(), mjOBJ_BODY, name.c_str());
  if (id >= 0) return id;
  Refuse(absl::StrCat("a body named '", name, "'"),
         OwnNames(*model_, mjOBJ_BODY, model_->nbody));
  return 0;
}

int TaskSetup::BodyOrIndex(const std::string& name_or_index) {
  uint32_t index = 0;
  if (!absl::SimpleAtoi(name_or_index, &index)) return Body(name_or_index);
  if (index < static_cast<uint32_t>(model_->nbody)) {
    return static_cast<int>(index);
  }
  Refuse(absl::StrCat("a body ", index),
         absl::StrCat("bodies 0 to ", model_->nbody - 1));
  return 0;
}

int TaskSetup::Keyframe(const std::string& name_or_index) {
  if (name_or_index.empty()) return -1;
  int index = -1;
  if (!absl::SimpleAtoi(name_or_index, &index)) {
    index = mj_name2id(model_.get(), mjOBJ_KEY, name_or_index.c_str());
  }
  if (index >= 0 && index < model_->nkey) return index;
  Refuse(absl::StrCat("a keyframe '", name_or_index, "'"),
         absl::StrCat(model_->nkey, " keyframes: ",
                      OwnNames(*model_, mjOBJ_KEY, model_->nkey)));
  return -1;
}

void TaskSetup::Refuse(absl::string_view expected, absl::string_view found) {
  if (!status_.ok()) return;
  status_ = MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("expected a model with ", expected, ", found ", found,
                   "; take another model, or another option (", path_, ")"));
}

}  // namespace tandem
