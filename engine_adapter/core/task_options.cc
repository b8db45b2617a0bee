#include "engine_adapter/core/task_options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/quoted.h"

namespace tandem {
namespace {

using nlohmann::json;

std::optional<double> NumberIn(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// Nested values are not written to the text: the recursion would use a stack as
// deep as the nesting.
std::string Shortened(const json& value) {
  const auto is_plain = [](const json& each) { return each.is_primitive(); };
  if (value.is_object() || !std::ranges::all_of(value, is_plain)) {
    return absl::StrCat("an ", value.type_name(), " of ", value.size());
  }
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  constexpr size_t kLongest = 80;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
  return text;
}

}  // namespace

TaskOptions::TaskOptions() : given_(std::make_unique<json>(json::object())) {}
TaskOptions::TaskOptions(const TaskOptions& other)
    : given_(std::make_unique<nlohmann::json>(*other.given_)),
      known_(other.known_),
      error_(other.error_) {}

TaskOptions::TaskOptions(TaskOptions&&) noexcept = default;
TaskOptions& TaskOptions::operator=(TaskOptions&&) noexcept = default;
TaskOptions::~TaskOptions() = default;

absl::StatusOr<TaskOptions> TaskOptions::Parse(absl::string_view text) {
  json parsed;
  std::string wrong = "no object";
  try {
    parsed = json::parse(text);
  } catch (const json::exception& error) {
    wrong = error.what();
  }
  if (!parsed.is_object()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("--task_options: expected a JSON object such "
                                  "as {\"reset_noise_scale\": 0.1}, found '",
                                  text.substr(0, 80), "' (", wrong, ")"));
  }
  TaskOptions options;
  *options.given_ = std::move(parsed);
  return options;
}

const json* TaskOptions::Find(const std::string& name) {
  known_.insert(name);
  const auto found = given_->find(name);
  return found == given_->end() ? nullptr : &*found;
}

void TaskOptions::Refuse(const std::string& name, absl::string_view expected) {
  if (!error_.ok()) return;
  error_ = MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat(name, ": expected ", expected, ", found ",
                                  Shortened(given_->at(name))));
}

double TaskOptions::Number(const std::string& name, double default_value,
                           double least) {
  const json* const value = Find(name);
  if (value == nullptr) return default_value;
  const std::optional<double> number = NumberIn(*value);
  if (number && std::isfinite(*number) && *number >= least) return *number;
  Refuse(name, least == std::numeric_limits<double>::lowest()
                   ? "a finite number"
                   : absl::StrCat("a finite number from ", least));
  return default_value;
}

bool TaskOptions::Bool(const std::string& name, bool default_value) {
  const json* const value = Find(name);
  if (value == nullptr) return default_value;
  if (value->is_boolean()) return value->get<bool>();
  Refuse(name, "true or false");
  return default_value;
}

uint32_t TaskOptions::Count(const std::string& name, uint32_t default_value) {
  const json* const value = Find(name);
  if (value == nullptr) return default_value;
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  if (value->is_number_unsigned() && value->get<uint64_t>() >= 1 &&
      value->get<uint64_t>() <= kMost) {
    return value->get<uint32_t>();
  }
  Refuse(name, absl::StrCat("an integer in 1 .. ", kMost));
  return default_value;
}

std::string TaskOptions::Text(const std::string& name,
                              const std::string& default_value) {
  const json* const value = Find(name);
  if (value == nullptr) return default_value;
  if (value->is_string()) {
    std::string text = value->get<std::string>();
    if (text.find('\0') == std::string::npos) return text;
  }
  Refuse(name, "a text without NUL");
  return default_value;
}

std::pair<double, double> TaskOptions::Range(
    const std::string& name, std::pair<double, double> default_value) {
  const json* const value = Find(name);
  if (value == nullptr) return default_value;
  if (value->is_array() && value->size() == 2) {
    const std::optional<double> low = NumberIn((*value)[0]);
    const std::optional<double> high = NumberIn((*value)[1]);
    if (low && high && *low <= *high) return {*low, *high};
  }
  Refuse(name, "two numbers, the lower one first");
  return default_value;
}

std::vector<std::string> TaskOptions::Names(
    const std::string& name, const std::vector<std::string>& known) {
  const json* const value = Find(name);
  if (value == nullptr) return {};
  std::vector<std::string> names;
  const auto is_new = [&](const json& one) {
    return one.is_string() &&
           std::ranges::find(known, one.get<std::string>()) != known.end() &&
           std::ranges::find(names, one.get<std::string>()) == names.end();
  };
  bool fits = value->is_array();
  for (size_t i = 0; fits && i < value->size(); ++i) {
    fits = is_new((*value)[i]);
    if (fits) names.push_back((*value)[i].get<std::string>());
  }
  if (fits) return names;
  Refuse(name, absl::StrCat("a list of names, none of them twice, out of ",
                            absl::StrJoin(known, ", ")));
  return {};
}

std::string TaskOptions::TextOrIndex(const std::string& name,
                                     const std::string& default_value) {
  const json* const value = Find(name);
  if (value == nullptr) return default_value;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_unsigned()) return value->dump();
  Refuse(name, "a name or an index from 0");
  return default_value;
}

absl::Status TaskOptions::Finish() const {
  if (!error_.ok()) return error_;
  for (const auto& item : given_->items()) {
    if (known_.count(item.key()) == 0) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat(
              "--task_options: unknown option: expected ",
              known_.empty()
                  ? "none"
                  : absl::StrCat("one of ", absl::StrJoin(known_, ", ")),
              ", found ", Quoted(item.key())));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem
