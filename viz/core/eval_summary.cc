#include "viz/core/eval_summary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/os/unique_fd.h"

namespace tandem {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

// Returns false if the key exists and its value is not a number; null is NaN.
bool TakeNumber(const nlohmann::json& object, const char* key, double* into) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_number() && !found->is_null()) return false;
  *into = found->is_null() ? std::numeric_limits<double>::quiet_NaN()
                           : found->get<double>();
  return true;
}

// The file may have any number as a count. Returns 0 if it cannot be a count.
int64_t Count(double value) {
  return value >= 0 && value < 9e15 ? static_cast<int64_t>(value) : 0;
}

}  // namespace

std::optional<EvalSummary> ParseEvalSummary(absl::string_view json) {
  const nlohmann::json object =
      nlohmann::json::parse(json.begin(), json.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  EvalSummary summary;
  double batches = 0;
  double episodes = 0;
  if (!TakeNumber(object, "batch_index", &batches) ||
      !TakeNumber(object, "episodes", &episodes) ||
      !TakeNumber(object, "avg_return", &summary.avg_return) ||
      !TakeNumber(object, "min_return", &summary.min_return) ||
      !TakeNumber(object, "max_return", &summary.max_return)) {
    return std::nullopt;
  }
  summary.batches = Count(batches);
  summary.episodes = Count(episodes);
  return summary;
}

std::optional<EvalSummary> ReadEvalSummary(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!file.valid() || fstat(file.get(), &about) != 0 ||
      !S_ISREG(about.st_mode) ||
      about.st_size > static_cast<off_t>(kMaxFileBytes)) {
    return std::nullopt;
  }
  std::string text(kMaxFileBytes, '\0');
  const ssize_t bytes = read(file.get(), text.data(), text.size());
  if (bytes < 0) return std::nullopt;
  text.resize(static_cast<size_t>(bytes));
  return ParseEvalSummary(text);
}

std::string DefaultEvalSummaryPath(absl::string_view run_id) {
  return absl::StrCat("var/trainer/runs/", run_id, "/eval_summary.json");
}

std::string EvalSummaryText(const EvalSummary& summary) {
  return absl::StrFormat(
      "evaluation batch %d, %d episodes\n"
      "return: avg %.2f, min %.2f, max %.2f",
      summary.batches, summary.episodes, summary.avg_return, summary.min_return,
      summary.max_return);
}

}  // namespace tandem
