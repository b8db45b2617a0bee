#include "engine_adapter/conformance/suite_arguments.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/quoted.h"
#include "program/program_flags.h"

ABSL_FLAG(
    std::string, limit_flag, "",
    "name of the engine's flag that truncates an episode after N steps, such "
    "as max_episode_steps; empty: the rules about ends of episodes are "
    "skipped");
ABSL_FLAG(std::string, actions, "0.5,0.1,0.2,0.3",
          "numbers that the engine can take as actions, with commas; for a "
          "choice between two actions 1,0");
ABSL_FLAG(std::string, filter, "",
          "a part of the names of the rules to check, such as Frames; empty: "
          "all");
ABSL_FLAG(bool, detect, false, "print what the engine has, and end");
ABSL_FLAG(bool, list, false, "print the names of all rules, and end");
ABSL_FLAG(uint32_t, rule_secs, 120,
          "whole seconds after which a rule fails and its engine is killed, at "
          "least 1: more than a start and a few hundred steps take");
ABSL_FLAG(std::string, python, "python3",
          "program that runs an ENGINE whose name ends with .py");

namespace tandem {
namespace {

constexpr char kUsage[] =
    "Usage: tandem-conformance [FLAG ...] ENGINE [FLAG OF THE ENGINE ...]\n\n"
    "Starts an engine's program some sixty times, steps, resets and kills it, "
    "and\nchecks the rules that every engine must keep. Prints what the engine "
    "has, then\na line for each rule: ok, FAILED with the reason, or skipped. "
    "The last line has\nthe numbers of these.\n\n"
    "  tandem-conformance --limit_flag=max_episode_steps ./my_engine "
    "--gravity=3"
    "\n\nExit code 0: no rule failed. 1: a rule failed, or the engine does not "
    "start.\n2: a wrong argument.";

ProgramFlags SuiteFlags() {
  return ProgramFlags("engine_adapter/conformance/");
}

SuiteArguments& Mutable() {
  static SuiteArguments& arguments = *new SuiteArguments;
  return arguments;
}

bool IsFile(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

// Returns the path of a program: `word` itself if it has a slash, else a file
// in one of PATH's folders.
absl::StatusOr<std::string> FindProgram(absl::string_view what,
                                        const std::string& word) {
  const auto refuse = [&](absl::string_view found, absl::string_view next) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat(what, ": expected a program, found ", found,
                                  " ", Quoted(word), "; ", next));
  };
  std::vector<std::string> candidates = {word};
  if (!absl::StrContains(word, '/')) {
    candidates.clear();
    const char* const path = std::getenv("PATH");
    for (const absl::string_view folder :
         absl::StrSplit(path != nullptr ? path : "", ':')) {
      candidates.push_back(
          absl::StrCat(folder.empty() ? "." : folder, "/", word));
    }
  }
  bool exists = false;
  for (const std::string& candidate : candidates) {
    if (!IsFile(candidate)) continue;
    exists = true;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  if (exists) {
    return refuse("a file that may not be executed,", "chmod +x makes it one");
  }
  if (candidates.size() != 1 && IsFile(word)) {
    return refuse("nothing in PATH with the name",
                  absl::StrCat("for the file in this folder write ./", word));
  }
  return refuse("no file", "give the path of the engine's program");
}

}  // namespace

absl::Status SuiteArguments::Parse(const std::vector<std::string>& words) {
  const ProgramFlags flags = SuiteFlags();
  SuiteArguments& arguments = Mutable();
  std::vector<absl::string_view> own;  // the words before ENGINE
  size_t next = 0;
  while (next < words.size() && absl::StartsWith(words[next], "-")) {
    absl::string_view name = words[next];
    own.push_back(words[next++]);
    while (absl::ConsumePrefix(&name, "-")) continue;
    const absl::CommandLineFlag* const flag = flags.Find(name);
    if (flag != nullptr && !flag->IsOfType<bool>() && next < words.size()) {
      own.push_back(words[next++]);  // its value
    }
  }
  arguments.help = ProgramFlags::WantHelp(own);
  if (arguments.help) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(flags.SetFromWords(own));
  arguments.limit_flag = absl::GetFlag(FLAGS_limit_flag);
  arguments.filter = absl::GetFlag(FLAGS_filter);
  arguments.list = absl::GetFlag(FLAGS_list);
  arguments.detect = absl::GetFlag(FLAGS_detect);
  arguments.rule_secs = absl::GetFlag(FLAGS_rule_secs);
  if (arguments.rule_secs == 0) {
    return ProgramFlags::Refuse(*flags.Find("rule_secs"));
  }
  for (const absl::string_view action :
       absl::StrSplit(absl::GetFlag(FLAGS_actions), ',')) {
    float& number = arguments.actions.emplace_back();
    if (!absl::SimpleAtof(action, &number) || !std::isfinite(number)) {
      return ProgramFlags::Refuse(*flags.Find("actions"));
    }
  }
  if (arguments.list) return absl::OkStatus();
  arguments.engine.assign(words.begin() + static_cast<ptrdiff_t>(next),
                          words.end());
  if (arguments.engine.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "ENGINE: expected the path of an engine's program, found "
                     "none; --help shows the arguments");
  }
  std::string& program = arguments.engine.front();
  if (absl::EndsWith(program, ".py") && IsFile(program)) {
    TANDEM_ASSIGN_OR_RETURN(
        std::string python,
        FindProgram("--python", absl::GetFlag(FLAGS_python)));
    arguments.engine.insert(arguments.engine.begin(), std::move(python));
    return absl::OkStatus();
  }
  TANDEM_ASSIGN_OR_RETURN(program, FindProgram("ENGINE", program));
  return absl::OkStatus();
}

const SuiteArguments& SuiteArguments::Get() { return Mutable(); }

std::string SuiteArguments::Help() { return SuiteFlags().Help(kUsage); }

}  // namespace tandem
