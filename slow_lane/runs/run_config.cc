#include "slow_lane/runs/run_config.h"

#include <sha2.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "slow_lane/runs/run_token.h"
#include "transport/base/printable.h"
#include "transport/base/quoted.h"

namespace tandem::slow_lane {
namespace {

using nlohmann::json;

constexpr size_t kLongestRunName = 120;  // characters
constexpr uint64_t kLeastMemoryMb = 256;
constexpr uint64_t kMostGpus = 8;
constexpr size_t kMostProblemsShown = 20;
// Of objects and arrays in one another. Code that writes or copies JSON needs a
// stack as deep as it.
constexpr int kDeepest = 64;

constexpr uint64_t kNoLimit = std::numeric_limits<int64_t>::max();

bool IsDeeperThan(const json& value, int levels) {
  if (value.is_primitive()) return false;
  if (levels == 0) return true;
  for (const json& each : value) {
    if (IsDeeperThan(each, levels - 1)) return true;
  }
  return false;
}

// As a problem's text shows it.
std::string Shown(const json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_structured()) {
    return absl::StrCat("an ", value.type_name(), " of ", value.size());
  }
  return value.dump();
}

size_t CountCharacters(absl::string_view utf8) {
  size_t characters = 0;
  for (const char byte : utf8) characters += (byte & 0xC0) != 0x80;
  return characters;
}

std::string Sha256(absl::string_view text) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> digits = {};
  SHA256Data(reinterpret_cast<const uint8_t*>(text.data()), text.size(),
             digits.data());
  return digits.data();
}

// Looks into JSON by path, and collects what is wrong with it.
class Problems {
 public:
  void Add(absl::string_view path, absl::string_view expected,
           absl::string_view found) {
    if (++count_ > kMostProblemsShown) return;
    shown_.push_back(absl::StrCat(Printable(path), ": expected ", expected,
                                  ", found ", found));
  }

  // Every key of an object must be one of these.
  void OnlyKeys(const json& object, absl::string_view path,
                absl::Span<const absl::string_view> keys) {
    for (const auto& [key, value] : object.items()) {
      if (absl::c_linear_search(keys, key)) continue;
      Add(path, absl::StrCat("only ", absl::StrJoin(keys, ", ")), Quoted(key));
    }
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

// One object of the config, whose members are taken one by one.
class Section {
 public:
  // `object` may be null: nothing is in it, and nothing is missed.
  Section(const json* object, std::string path, Problems* problems)
      : object_(object), path_(std::move(path)), problems_(problems) {}

  const json* Find(absl::string_view key) const {
    if (object_ == nullptr) return nullptr;
    const auto found = object_->find(std::string(key));
    return found == object_->end() ? nullptr : &*found;
  }

  std::string PathOf(absl::string_view key) const {
    return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
  }

  // The member, if it is there; it is a problem if it has to be and is not.
  const json* Take(absl::string_view key, bool required,
                   absl::string_view expected) {
    const json* const member = Find(key);
    if (member == nullptr && required && object_ != nullptr) {
      problems_->Add(PathOf(key), expected, "nothing");
    }
    return member;
  }

  Section Object(absl::string_view key, bool required,
                 absl::Span<const absl::string_view> keys = {}) {
    const json* member = Take(key, required, "an object");
    if (member != nullptr && !member->is_object()) {
      problems_->Add(PathOf(key), "an object", Shown(*member));
      member = nullptr;
    }
    if (member != nullptr && !keys.empty()) {
      problems_->OnlyKeys(*member, PathOf(key), keys);
    }
    return Section(member, PathOf(key), problems_);
  }

  void Integer(absl::string_view key, bool required, uint64_t least,
               uint64_t most, std::optional<uint64_t>* value) {
    const std::string expected =
        most == kNoLimit
            ? absl::StrCat("an integer of at least ", least)
            : absl::StrCat("an integer from ", least, " to ", most);
    const json* const member = Take(key, required, expected);
    if (member == nullptr) return;
    const std::optional<uint64_t> number = IntegerIn(*member);
    if (number.has_value() && *number >= least && *number <= most) {
      *value = *number;
    } else {
      problems_->Add(PathOf(key), expected, Shown(*member));
    }
  }

  void Bool(absl::string_view key, bool* value) {
    const json* const member = Find(key);
    if (member == nullptr) return;
    if (member->is_boolean()) {
      *value = member->get<bool>();
    } else {
      problems_->Add(PathOf(key), "true or false", Shown(*member));
    }
  }

  // null counts as nothing where it need not be there.
  void Text(absl::string_view key, bool required, std::string* value) {
    constexpr absl::string_view kExpected = "a string, not empty, without NULs";
    const json* const member = Take(key, required, kExpected);
    if (member == nullptr || (member->is_null() && !required)) return;
    if (IsText(*member) && !member->get_ref<const std::string&>().empty()) {
      *value = member->get<std::string>();
    } else {
      problems_->Add(PathOf(key), kExpected, Shown(*member));
    }
  }

  // No system call takes a string with a NUL in it.
  static bool IsText(const json& value) {
    return value.is_string() &&
           value.get_ref<const std::string&>().find('\0') == std::string::npos;
  }

  const json* object() const { return object_; }
  const std::string& path() const { return path_; }

 private:
  // JSON knows no integers: 4.0 is one.
  static std::optional<uint64_t> IntegerIn(const json& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    if (!value.is_number_float()) return std::nullopt;
    const double number = value.get<double>();
    constexpr double kAllExactBelow = 9007199254740992;
    if (number < 0 || number > kAllExactBelow || std::trunc(number) != number) {
      return std::nullopt;
    }
    return static_cast<uint64_t>(number);
  }

  const json* object_;
  std::string path_;
  Problems* problems_;
};

void ReadArguments(Section& root, Problems* problems, RunConfig* config) {
  constexpr absl::string_view kExpected = "a string without NULs";
  const json* const list = root.Take("arguments", true, "an array of strings");
  if (list == nullptr) return;
  if (!list->is_array()) {
    problems->Add("arguments", "an array of strings", Shown(*list));
    return;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    if (Section::IsText((*list)[i])) {
      config->arguments.push_back((*list)[i].get<std::string>());
    } else {
      problems->Add(absl::StrCat("arguments[", i, "]"), kExpected,
                    Shown((*list)[i]));
    }
  }
}

void ReadEnvironment(Section& root, Problems* problems, RunConfig* config) {
  const Section environment = root.Object("environment", true);
  if (environment.object() == nullptr) return;
  for (const auto& [name, value] : environment.object()->items()) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      problems->Add("environment", "names without '=' and NULs, not empty",
                    Quoted(name));
    } else if (name == kRunTokenVariable) {
      problems->Add("environment", "names other than the daemon's own",
                    Quoted(name));
    } else if (!Section::IsText(value)) {
      problems->Add(environment.PathOf(name), "a string without NULs",
                    Shown(value));
    } else {
      config->environment[name] = value.get<std::string>();
    }
  }
}

void ReadResources(Section& root, RunConfig* config) {
  std::optional<uint64_t> number;
  Section resources =
      root.Object("resources", true, {"cpus", "memory_mb", "gpus"});
  resources.Integer("cpus", true, 1, kNoLimit, &number);
  config->cpus = number.value_or(config->cpus);
  number.reset();
  resources.Integer("memory_mb", true, kLeastMemoryMb, kNoLimit, &number);
  config->memory_mb = number.value_or(config->memory_mb);
  number.reset();
  Section gpus = resources.Object("gpus", true, {"requested", "mandatory"});
  gpus.Integer("requested", true, 0, kMostGpus, &number);
  config->gpus_requested = static_cast<uint32_t>(number.value_or(0));
  gpus.Bool("mandatory", &config->gpus_mandatory);
}

void ReadArtifacts(Section& root, RunConfig* config) {
  Section artifacts = root.Object(
      "artifacts", true, {"output_prefix", "persist_logs", "keep_checkpoints"});
  std::string prefix;
  artifacts.Text("output_prefix", false, &prefix);
  if (!prefix.empty()) config->output_prefix = prefix;
  artifacts.Bool("persist_logs", &config->persist_logs);
  artifacts.Bool("keep_checkpoints", &config->keep_checkpoints);
}

void ReadMetadata(Section& root, Problems* problems, RunConfig* config) {
  Section metadata = root.Object("metadata", false);
  Section tandem =
      metadata.Object("tandem", false, {"working_directory", "step_stride"});
  std::string folder;
  tandem.Text("working_directory", false, &folder);
  if (!folder.empty() && folder.front() != '/') {
    problems->Add("metadata.tandem.working_directory", "an absolute path",
                  Quoted(folder));
  } else if (!folder.empty()) {
    config->working_directory = folder;
  }
  std::optional<uint64_t> stride;
  tandem.Integer("step_stride", false, 1, kNoLimit, &stride);
  config->step_stride = stride.value_or(1);
  // Another program's: whatever else it may be, it is not read.
  const json* const worker = metadata.Find("worker");
  if (worker == nullptr || !worker->is_object()) return;
  const auto worker_id = worker->find("worker_id");
  if (worker_id == worker->end() || *worker_id == "") return;
  std::string name;
  Section(worker, "metadata.worker", problems).Text("worker_id", false, &name);
  if (!name.empty()) config->worker_id = name;
}

// The same config with every default in its place.
json Canonical(const json& given, const RunConfig& config) {
  json canonical = given;
  canonical["resources"] = {{"cpus", config.cpus},
                            {"memory_mb", config.memory_mb},
                            {"gpus",
                             {{"requested", config.gpus_requested},
                              {"mandatory", config.gpus_mandatory}}}};
  json artifacts = {{"persist_logs", config.persist_logs},
                    {"keep_checkpoints", config.keep_checkpoints}};
  if (config.output_prefix) artifacts["output_prefix"] = *config.output_prefix;
  canonical["artifacts"] = std::move(artifacts);
  if (!given.contains("metadata")) canonical["metadata"] = json::object();
  json schedule = json::object();
  if (config.max_duration_secs) {
    schedule["max_duration_seconds"] = *config.max_duration_secs;
  }
  if (config.max_steps) schedule["max_steps"] = *config.max_steps;
  canonical["schedule"] = std::move(schedule);
  return canonical;
}

absl::StatusOr<json> ParseObject(absl::string_view text) {
  json given;
  std::string wrong;
  try {
    given = json::parse(text.begin(), text.end());
  } catch (const json::exception& error) {
    wrong = error.what();
  }
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("run config: expected JSON, found ", Quoted(text), ": ",
                     Quoted(wrong)));
  }
  if (!given.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run config: expected a JSON object, found ", Shown(given)));
  }
  if (IsDeeperThan(given, kDeepest)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run config: expected objects and arrays within one another at most ",
        kDeepest, " deep, found more"));
  }
  return given;
}

absl::Status CheckSize(absl::string_view text) {
  if (text.size() <= kMaxConfigBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "run config: expected at most ", kMaxConfigBytes, " bytes, found ",
      text.size(), "; put what is large into a file, and name that"));
}

}  // namespace

absl::StatusOr<RunConfig> ParseSubmittedConfig(absl::string_view text) {
  if (absl::Status status = CheckSize(text); !status.ok()) return status;
  absl::StatusOr<RunConfig> config = ParseRunConfig(text);
  if (!config.ok()) return config;
  // Longer by its defaults, and by numbers such as 1e15.
  if (absl::Status status = CheckSize(config->canonical_json); !status.ok()) {
    return status;
  }
  return config;
}

absl::StatusOr<RunConfig> ParseRunConfig(absl::string_view text) {
  absl::StatusOr<json> given = ParseObject(text);
  if (!given.ok()) return given.status();
  RunConfig config;
  Problems problems;
  problems.OnlyKeys(*given, "the config",
                    {"run_name", "entry_point", "arguments", "environment",
                     "resources", "artifacts", "metadata", "schedule"});
  Section root(&*given, "", &problems);
  root.Text("run_name", true, &config.run_name);
  if (CountCharacters(config.run_name) > kLongestRunName) {
    problems.Add("run_name",
                 absl::StrCat("at most ", kLongestRunName, " characters"),
                 Quoted(config.run_name));
  }
  root.Text("entry_point", true, &config.entry_point);
  ReadArguments(root, &problems, &config);
  ReadEnvironment(root, &problems, &config);
  ReadResources(root, &config);
  ReadArtifacts(root, &config);
  ReadMetadata(root, &problems, &config);
  Section schedule =
      root.Object("schedule", false, {"max_duration_seconds", "max_steps"});
  schedule.Integer("max_duration_seconds", false, 1, kNoLimit,
                   &config.max_duration_secs);
  schedule.Integer("max_steps", false, 1, kNoLimit, &config.max_steps);
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;

  config.canonical_json = Canonical(*given, config).dump();
  config.digest = Sha256(config.canonical_json);
  return config;
}

}  // namespace tandem::slow_lane
