#include "slow_lane/runs/config_members.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/quoted.h"
#include "slow_lane/runs/run_token.h"
#include "utf8cpp/utf8.h"

namespace tandem::slow_lane {
namespace {

using nlohmann::json;

constexpr size_t kMostProblemsShown = 20;
constexpr uint64_t kYearSecs = 365 * 24 * 3600;
constexpr uint64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostPriority = 1'000'000;

enum class Kind {
  kObject,      // an object with the table's keys only
  kOpenObject,  // an object with any keys
  kVariables,   // environment variables
  kTexts,       // an array of texts
  kText,        // a text; null: none, if it is not required
  kName,        // as kText; empty: none
  kFolder,      // as kText; a folder
  kAmounts,     // names and numbers above 0
  kVideoMode,   // MOSAIC's words
  kCauses,      // an array of kRestartCauses
  kParameters,  // names with texts, numbers and booleans
  kPriority,    // an integer, at most kMostPriority away from 0
  kInteger,
  kBool,
};

struct Rule {
  absl::string_view path;
  Kind kind;
  bool is_required = false;
  uint64_t least = 0;
  uint64_t most = kNoLimit;  // for a text: characters
};

// The members of a configuration. An object precedes its members.
constexpr Rule kRules[] = {
    {"run_name", Kind::kText, true, 1, 120},
    {"entry_point", Kind::kText, true},
    {"arguments", Kind::kTexts, true},
    {"environment", Kind::kVariables, true},
    {"resources", Kind::kObject, true},
    {"resources.cpus", Kind::kInteger, true, 1},
    {"resources.memory_mb", Kind::kInteger, true, 256},
    {"resources.gpus", Kind::kObject, true},
    {"resources.gpus.requested", Kind::kInteger, true, 0, 8},
    {"resources.gpus.mandatory", Kind::kBool},
    {"artifacts", Kind::kObject, true},
    {"artifacts.output_prefix", Kind::kText},
    {"artifacts.persist_logs", Kind::kBool},
    {"artifacts.keep_checkpoints", Kind::kBool},
    {"metadata", Kind::kOpenObject},
    {"metadata.tandem", Kind::kObject},
    {"metadata.tandem.working_directory", Kind::kFolder},
    {"metadata.tandem.step_stride", Kind::kInteger, false, 1},
    {"metadata.tandem.enforce_resources", Kind::kBool},
    {"metadata.tandem.reserve_memory", Kind::kBool},
    {"metadata.tandem.priority", Kind::kPriority},
    {kParameters, Kind::kParameters},
    {"metadata.tandem.sweep", Kind::kText, false, 1, 120},
    {kRestart, Kind::kObject},
    {"metadata.tandem.restart.max", Kind::kInteger, true, 1, 1000},
    {"metadata.tandem.restart.on", Kind::kCauses},
    {"metadata.tandem.fault_after", Kind::kInteger, false, 0, kYearSecs},
    {"metadata.tandem.fast_lane", Kind::kObject},
    {"metadata.tandem.fast_lane.only", Kind::kBool},
    {"metadata.tandem.fast_lane.slot", Kind::kInteger, false, 0},
    {"metadata.tandem.fast_lane.video_mode", Kind::kVideoMode},
    {"metadata.tandem.fast_lane.grid_limit", Kind::kInteger, false, 1},
    {kRay, Kind::kObject},
    {"metadata.tandem.ray.address", Kind::kText, true},
    {"metadata.tandem.ray.resources", Kind::kAmounts},
    // "worker" belongs to another program, and need not be an object.
    {"metadata.worker.worker_id", Kind::kName},
    {"schedule", Kind::kObject},
    {"schedule.max_duration_seconds", Kind::kInteger, false, 1},
    {"schedule.max_steps", Kind::kInteger, false, 1},
};

// Returns the path of the member's object, and the member's key in it.
std::pair<absl::string_view, absl::string_view> SplitPath(
    absl::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == path.npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// Collects the problems of a configuration.
class Problems {
 public:
  void Add(absl::string_view path, absl::string_view expected,
           absl::string_view found) {
    if (++count_ > kMostProblemsShown) return;
    shown_.push_back(absl::StrCat(Printable(path), ": expected ", expected,
                                  ", found ", found));
  }

  absl::Status ToStatus() const {
    if (count_ == 0) return absl::OkStatus();
    std::string text = absl::StrCat("run config: ", count_,
                                    count_ == 1 ? " problem: " : " problems: ",
                                    absl::StrJoin(shown_, "; "));
    if (count_ > shown_.size()) {
      absl::StrAppend(&text, "; and ", count_ - shown_.size(), " more");
    }
    return absl::InvalidArgumentError(text);
  }

 private:
  size_t count_ = 0;
  std::vector<std::string> shown_;
};

// JSON has no integer type: 4.0 is an integer, too.
std::optional<uint64_t> IntegerOf(const json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kAllExactBelow = 9007199254740992;
  if (number < 0 || number > kAllExactBelow || std::trunc(number) != number) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(number);
}

// Refuses NUL: system calls take no strings with NUL.
bool IsText(const json& value) {
  return value.is_string() &&
         value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

// Returns the rule's expectation as text; `is_met` gets whether `value` meets
// it.
std::string Expected(const Rule& rule, const json& value, bool* is_met) {
  switch (rule.kind) {
    case Kind::kObject:
    case Kind::kOpenObject:
    case Kind::kVariables:
    case Kind::kAmounts:
      *is_met = value.is_object();
      return "an object";
    case Kind::kParameters:
      *is_met =
          value.is_object() && absl::c_all_of(value, [](const json& each) {
            return each.is_primitive() && !each.is_null();
          });
      return "an object of strings, numbers, true and false";
    case Kind::kCauses:
      *is_met =
          value.is_array() && absl::c_all_of(value, [](const json& each) {
            return each.is_string() &&
                   absl::c_linear_search(kRestartCauses,
                                         each.get_ref<const std::string&>());
          });
      return absl::StrCat("an array of ", absl::StrJoin(kRestartCauses, ", "));
    case Kind::kPriority:
      *is_met = value.is_number_integer() &&
                value.get<double>() >= -static_cast<double>(kMostPriority) &&
                value.get<double>() <= static_cast<double>(kMostPriority);
      return absl::StrCat("an integer from ", -kMostPriority, " to ",
                          kMostPriority);
    case Kind::kTexts:
      *is_met = value.is_array();
      return "an array of strings";
    case Kind::kBool:
      *is_met = value.is_boolean();
      return "true or false";
    case Kind::kInteger: {
      const std::optional<uint64_t> number = IntegerOf(value);
      *is_met =
          number.has_value() && *number >= rule.least && *number <= rule.most;
      return rule.most == kNoLimit
                 ? absl::StrCat("an integer of at least ", rule.least)
                 : absl::StrCat("an integer from ", rule.least, " to ",
                                rule.most);
    }
    case Kind::kVideoMode:
      *is_met = value == "single" || value == "grid" || value == "off";
      return "single, grid or off";
    case Kind::kText:
    case Kind::kName:
    case Kind::kFolder:
      break;
  }
  *is_met = IsText(value) && value != "";
  return "a string, not empty, without NULs";
}

bool IsNone(const json& value, Kind kind) {
  const bool is_text =
      kind == Kind::kText || kind == Kind::kName || kind == Kind::kFolder;
  return (is_text && value.is_null()) || (kind == Kind::kName && value == "");
}

void CheckKeys(const json& object, absl::string_view path, Problems* problems) {
  std::vector<absl::string_view> keys;
  for (const Rule& rule : kRules) {
    const auto [parent, key] = SplitPath(rule.path);
    if (parent == path) keys.push_back(key);
  }
  for (const auto& [key, value] : object.items()) {
    if (absl::c_linear_search(keys, key)) continue;
    problems->Add(path.empty() ? "the config" : path,
                  absl::StrCat("only ", absl::StrJoin(keys, ", ")),
                  Quoted(key));
  }
}

void CheckTexts(const json& list, absl::string_view path, Problems* problems) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (IsText(list[i])) continue;
    problems->Add(absl::StrCat(path, "[", i, "]"), "a string without NULs",
                  Shown(list[i]));
  }
}

void CheckVariables(const json& environment, absl::string_view path,
                    Problems* problems) {
  for (const auto& [name, value] : environment.items()) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      problems->Add(path, "names without '=' and NULs, not empty",
                    Quoted(name));
    } else if (name == kRunTokenVariable) {
      problems->Add(path, "names other than the daemon's own", Quoted(name));
    } else if (!IsText(value)) {
      problems->Add(absl::StrCat(path, ".", name), "a string without NULs",
                    Shown(value));
    }
  }
}

void CheckAmounts(const json& amounts, absl::string_view path,
                  Problems* problems) {
  for (const auto& [name, value] : amounts.items()) {
    if (name.empty()) problems->Add(path, "names, not empty", Quoted(name));
    if (!value.is_number() || !(value.get<double>() > 0)) {
      problems->Add(absl::StrCat(path, ".", name), "a number above 0",
                    Shown(value));
    }
  }
}

// Ray assigns processors and GPUs, and only its nodes know the worker's times
// and memory.
void CheckRay(json& root, Problems* problems) {
  if (FindMember(root, kRay) == nullptr) return;
  constexpr absl::string_view kBeside = " with metadata.tandem.ray";
  if (IntegerAt(root, "resources.gpus.requested").value_or(0) > 0) {
    problems->Add("resources.gpus.requested",
                  absl::StrCat("0", kBeside, ", whose resources may have GPU"),
                  "more");
  }
  for (const absl::string_view path :
       {absl::string_view("schedule.max_duration_seconds"),
        absl::string_view("metadata.tandem.enforce_resources"), kRestart}) {
    if (FindMember(root, path) != nullptr) {
      problems->Add(path, absl::StrCat("none", kBeside), "one");
    }
  }
}

// Checks a member. Converts integers such as 4.0, except in metadata, which do
// not change.
void Check(json& root, const Rule& rule, Problems* problems) {
  const json* const parent = FindMember(root, SplitPath(rule.path).first);
  if (parent == nullptr || !parent->is_object()) return;
  json* const value = FindMember(root, rule.path);
  if (value == nullptr && !rule.is_required) return;
  if (value != nullptr && !rule.is_required && IsNone(*value, rule.kind)) {
    return;
  }
  const json nothing;
  bool is_met = false;
  const std::string expected =
      Expected(rule, value == nullptr ? nothing : *value, &is_met);
  if (value == nullptr || !is_met) {
    return problems->Add(rule.path, expected,
                         value == nullptr ? "nothing" : Shown(*value));
  }
  if (rule.kind == Kind::kObject) CheckKeys(*value, rule.path, problems);
  if (rule.kind == Kind::kTexts) CheckTexts(*value, rule.path, problems);
  if (rule.kind == Kind::kVariables) {
    CheckVariables(*value, rule.path, problems);
  }
  if (rule.kind == Kind::kAmounts) CheckAmounts(*value, rule.path, problems);
  if (rule.kind == Kind::kInteger &&
      !absl::StartsWith(rule.path, "metadata.")) {
    *value = *IntegerOf(*value);
  }
  if (rule.kind == Kind::kFolder &&
      !value->get_ref<const std::string&>().starts_with('/')) {
    problems->Add(rule.path, "an absolute path", Shown(*value));
  }
  if (rule.kind == Kind::kText) {
    // The JSON parser has refused invalid UTF-8.
    const std::string& text = value->get_ref<const std::string&>();
    const auto characters = utf8::unchecked::distance(text.begin(), text.end());
    if (static_cast<uint64_t>(characters) > rule.most) {
      problems->Add(rule.path,
                    absl::StrCat("at most ", rule.most, " characters"),
                    Shown(*value));
    }
  }
}

}  // namespace

absl::Status CheckMembers(json& root) {
  Problems problems;
  CheckKeys(root, "", &problems);
  for (const Rule& rule : kRules) Check(root, rule, &problems);
  CheckRay(root, &problems);
  return problems.ToStatus();
}

json* FindMember(json& root, absl::string_view path) {
  json* found = &root;
  for (const absl::string_view key :
       absl::StrSplit(path, '.', absl::SkipEmpty())) {
    if (!found->is_object()) return nullptr;
    const auto member = found->find(std::string(key));
    if (member == found->end()) return nullptr;
    found = &*member;
  }
  return found;
}

std::optional<uint64_t> IntegerAt(json& root, absl::string_view path) {
  const json* const value = FindMember(root, path);
  return value == nullptr ? std::nullopt : IntegerOf(*value);
}

std::optional<std::string> TextAt(json& root, absl::string_view path) {
  const json* const value = FindMember(root, path);
  if (value == nullptr || IsNone(*value, Kind::kName)) return std::nullopt;
  return value->get<std::string>();
}

bool FlagAt(json& root, absl::string_view path) {
  const json* const value = FindMember(root, path);
  return value != nullptr && value->get<bool>();
}

std::string Shown(const json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_structured()) {
    return absl::StrCat("an ", value.type_name(), " of ", value.size());
  }
  return value.dump();
}

}  // namespace tandem::slow_lane
