// TaskOptions: the keyword options of a task, as the user wrote them.
// TaskRequest: the parameters with which a server makes a task.
//
// Data flow: JSON text ({"healthy_reward": 2, "healthy_z_range": [0.2, 1]}) ->
// TaskOptions -> typed values; absent options have their defaults.
// Ownership: the code that makes the task owns it, and destroys it afterwards.
//
//   absl::StatusOr<TaskOptions> options = TaskOptions::Parse(text);
//   const double weight = options->Number("ctrl_cost_weight", 0.5);
//   absl::Status status = options->Finish();

#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Legal order: one getter call for each option of the task, then Finish. A
// getter returns the default if the option is absent or has another type;
// Finish reports the latter as an error. Infinities are the texts "inf" and
// "-inf".
class TaskOptions {
 public:
  // No options.
  TaskOptions();
  // kInvalidArgument if `text` is not a JSON object.
  static absl::StatusOr<TaskOptions> Parse(absl::string_view text);
  TaskOptions(const TaskOptions& other);
  TaskOptions& operator=(const TaskOptions&) = delete;
  TaskOptions(TaskOptions&&) noexcept;
  TaskOptions& operator=(TaskOptions&&) noexcept;
  ~TaskOptions();

  // A finite number, at least `least`.
  double Number(const std::string& name, double default_value,
                double least = std::numeric_limits<double>::lowest());
  bool Bool(const std::string& name, bool default_value);
  // An integer, at least 1.
  uint32_t Count(const std::string& name, uint32_t default_value);
  std::string Text(const std::string& name, const std::string& default_value);
  // An array of two numbers; the second is at least the first. Infinities are
  // allowed.
  std::pair<double, double> Range(const std::string& name,
                                  std::pair<double, double> default_value);
  // A list of names out of `known`, none of them twice. Default: none.
  std::vector<std::string> Names(const std::string& name,
                                 const std::vector<std::string>& known);
  // A text, or an integer of at least 0; Ant's main_body has this type.
  std::string TextOrIndex(const std::string& name,
                          const std::string& default_value);

  // kInvalidArgument for the first option that has the wrong type or is unknown
  // (no getter was called for it). The text has its name and the known options.
  absl::Status Finish() const;

 private:
  // Returns the value, or nullptr. Records that the task has such an option.
  const nlohmann::json* Find(const std::string& name);
  void Refuse(const std::string& name, absl::string_view expected);

  std::unique_ptr<nlohmann::json> given_;  // an object
  std::set<std::string> known_;
  absl::Status error_;  // the first error
};

// The parameters with which a server makes a task of a family.
struct TaskRequest {
  uint32_t num_envs = 1;
  int threads = 1;
  TaskOptions options = {};
  std::string assets_folder = {};                  // "": the installed folder
  std::optional<uint32_t> max_episode_steps = {};  // none: task's; 0: no limit
};

}  // namespace tandem
