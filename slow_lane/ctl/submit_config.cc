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
#include "slow_lane/runs/printable_head.h"
#include "transport/base/quoted.h"

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

// Bytes of the character that `text` begins with; 0: with none of UTF-8.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (byte(i) >> 6 != 0b10) return 0;
  }
  // Spelled longer than need be, a surrogate, or beyond U+10FFFF.
  const uint8_t second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return bytes;
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
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text.substr(at));
    if (bytes == 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--config: expected UTF-8, found the byte 0x%02x at offset %d of %s"
          "\nNext: save it as UTF-8; of Latin 1, iconv -f LATIN1 -t UTF-8 "
          "makes "
          "it",
          static_cast<uint8_t>(text[at]), at,
          file == "-" ? "standard input" : file));
    }
    at += bytes;
  }
  return absl::OkStatus();
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
