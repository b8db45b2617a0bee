// TaskOptions: the keyword options of a task, as its user wrote them.
// TaskRequest: what a server asks of a family of tasks.
//
// Data flow: JSON text ({"healthy_reward": 2, "healthy_z_range": [0.2, 1]}) ->
// TaskOptions -> typed values, defaults where nothing was said.
// Ownership: the code that makes the task; thrown away afterwards.
//
//   absl::StatusOr<TaskOptions> options = TaskOptions::Parse(text);
//   const double weight = options->Number("ctrl_cost_weight", 0.5);
//   absl::Status status = options->Finish();

#ifndef TANDEM_ENGINE_ADAPTER_CORE_TASK_OPTIONS_H_
#define TANDEM_ENGINE_ADAPTER_CORE_TASK_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Call each getter once for each option that the task has, then Finish. A
// getter gives the default where the option is missing or of another type; the
// latter is Finish's error. Infinities are the texts "inf" and "-inf".
class TaskOptions {
 public:
  // None.
  TaskOptions();
  // kInvalidArgument if it is no JSON object.
  static absl::StatusOr<TaskOptions> Parse(absl::string_view text);
  TaskOptions(const TaskOptions& other);
  TaskOptions& operator=(const TaskOptions&) = delete;
  TaskOptions(TaskOptions&&) noexcept;
  TaskOptions& operator=(TaskOptions&&) noexcept;
  ~TaskOptions();

  // Finite, and not below `least`.
  double Number(const std::string& name, double default_value,
                double least = std::numeric_limits<double>::lowest());
  bool Bool(const std::string& name, bool default_value);
  // An integer from 1.
  uint32_t Count(const std::string& name, uint32_t default_value);
  std::string Text(const std::string& name, const std::string& default_value);
  // An array of two numbers, of which the second is not less than the first;
  // infinities are allowed.
  std::pair<double, double> Range(const std::string& name,
                                  std::pair<double, double> default_value);
  // A text or an integer from 0; what Ant's main_body is.
  std::string TextOrIndex(const std::string& name,
                          const std::string& default_value);

  // kInvalidArgument for the first option that has the wrong type or is unknown
  // (no getter asked for it): names it and the known options.
  absl::Status Finish() const;

 private:
  // The value, or nullptr; notes that the task has such an option.
  const nlohmann::json* Find(const std::string& name);
  void Refuse(const std::string& name, absl::string_view expected);

  std::unique_ptr<nlohmann::json> given_;  // an object
  std::set<std::string> known_;
  absl::Status error_;  // the first
};

// What a server asks of a family of tasks.
struct TaskRequest {
  uint32_t num_envs = 1;
  int threads = 1;
  TaskOptions options = {};
  std::string assets_folder = {};                  // "": the installed one
  std::optional<uint32_t> max_episode_steps = {};  // none: the task's; 0: none
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_TASK_OPTIONS_H_
