#include "slow_lane/ctl/submit_config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "transport/base/printable.h"
#include "transport/base/quoted.h"
#include "transport/base/utf8.h"

namespace tandem::slow_lane {
namespace {

using nlohmann::json;

// A TrainRunConfig's run_name has at most so many characters.
constexpr size_t kLongestName = 120;

// A config asks for something of each; the daemon counts GPUs alone.
constexpr int kCpus = 1;
constexpr int kMemoryMb = 256;

bool IsProgram(const std::string& path) {
  struct stat file;
  return stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string DefaultName(const SubmitCommand& submit) {
  std::vector<std::string> words = submit.program;
  words.front() = words.front().substr(words.front().rfind('/') + 1);
  std::string name = PrintableHead(absl::StrJoin(words, " "), kLongestName);
  return name.empty() ? "run" : name;
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        absl::string_view path) {
  if (name.find('/') != std::string::npos) return name;
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    const std::string candidate =
        absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (IsProgram(candidate)) {
      return std::filesystem::absolute(candidate).string();
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "PROGRAM: expected a program on PATH, found none named ", Quoted(name),
      "; one of the current folder is ./", name, "; PATH is ", path));
}

absl::Status CheckUtf8(absl::string_view text, absl::string_view file) {
  const size_t at = Utf8PrefixBytes(text);
  if (at == text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "--config: expected UTF-8, found the byte 0x%02x at offset %d of %s"
      "\nNext: save it as UTF-8; of Latin 1, iconv -f LATIN1 -t UTF-8 makes it",
      static_cast<uint8_t>(text[at]), at,
      file == "-" ? "standard input" : file));
}

std::string SubmitConfigJson(const SubmitCommand& submit,
                             const std::string& program,
                             const std::string& folder) {
  json environment = json::object();
  for (const auto& [name, value] : submit.environment) {
    environment[name] = value;
  }
  json tandem = {{"working_directory", folder}};
  if (submit.step_stride) tandem["step_stride"] = *submit.step_stride;
  json schedule = json::object();
  if (submit.max_steps) schedule["max_steps"] = *submit.max_steps;
  if (submit.max_duration_secs) {
    schedule["max_duration_seconds"] = *submit.max_duration_secs;
  }
  const json config = {
      {"run_name", submit.name.empty() ? DefaultName(submit) : submit.name},
      {"entry_point", program},
      {"arguments", std::vector<std::string>(submit.program.begin() + 1,
                                             submit.program.end())},
      {"environment", environment},
      {"resources",
       {{"cpus", kCpus},
        {"memory_mb", kMemoryMb},
        {"gpus",
         {{"requested", submit.gpus}, {"mandatory", submit.gpus > 0}}}}},
      {"artifacts", json::object()},
      {"metadata", {{"tandem", tandem}}},
      {"schedule", schedule}};
  return config.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tandem::slow_lane
