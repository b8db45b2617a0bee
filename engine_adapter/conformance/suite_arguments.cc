#include "engine_adapter/conformance/suite_arguments.h"

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "program/program_flags.h"

ABSL_FLAG(std::string, limit_flag, "",
          "flag of the server: number of steps that truncates an episode");
ABSL_FLAG(std::string, actions, "0.5,0.1,0.2,0.3",
          "actions that the server can take, with commas");

namespace tandem {
namespace {

SuiteArguments& Mutable() {
  static SuiteArguments& arguments = *new SuiteArguments;
  return arguments;
}

}  // namespace

bool SuiteArguments::Parse(std::vector<std::string> words) {
  const auto server = absl::c_find_if(words, [](absl::string_view word) {
    return !absl::StartsWith(word, "-");
  });
  const ProgramFlags flags("engine_adapter/conformance/");
  SuiteArguments& arguments = Mutable();
  arguments.server.assign(server, words.end());
  if (arguments.server.empty() ||
      !flags.SetFromWords(std::vector<absl::string_view>(words.begin(), server))
           .ok()) {
    return false;
  }
  arguments.limit_flag = absl::GetFlag(FLAGS_limit_flag);
  for (const absl::string_view action :
       absl::StrSplit(absl::GetFlag(FLAGS_actions), ',')) {
    if (!absl::SimpleAtof(action, &arguments.actions.emplace_back())) {
      return false;
    }
  }
  return !arguments.limit_flag.empty();
}

const SuiteArguments& SuiteArguments::Get() { return Mutable(); }

}  // namespace tandem
