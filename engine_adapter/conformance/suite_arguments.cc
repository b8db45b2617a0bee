#include "engine_adapter/conformance/suite_arguments.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

SuiteArguments& Mutable() {
  static SuiteArguments& arguments = *new SuiteArguments;
  return arguments;
}

}  // namespace

bool SuiteArguments::Parse(std::vector<std::string> words) {
  const auto take = [&words](absl::string_view flag, std::string* value) {
    if (words.empty() || !absl::StartsWith(words[0], flag)) return false;
    *value = words[0].substr(flag.size());
    words.erase(words.begin());
    return true;
  };
  SuiteArguments& arguments = Mutable();
  if (!take("--limit_flag=", &arguments.limit_flag)) return false;
  std::string actions;
  if (take("--actions=", &actions)) {
    arguments.actions.clear();
    for (const absl::string_view action : absl::StrSplit(actions, ',')) {
      float& value = arguments.actions.emplace_back();
      if (!absl::SimpleAtof(action, &value)) return false;
    }
  }
  arguments.server = std::move(words);
  return !arguments.server.empty();
}

const SuiteArguments& SuiteArguments::Get() { return Mutable(); }

}  // namespace tandem
