// SuiteArguments: what the suite is told of the server that it checks.
//
// Data flow: command line -> SuiteArguments -> every test.
// Ownership: main parses once, before any test runs.
//
//   SuiteArguments::Parse({"--limit_flag=max_steps", "server", "--task=X"});
//   SuiteArguments::Get().server;  // {"server", "--task=X"}

#ifndef TANDEM_ENGINE_ADAPTER_CONFORMANCE_SUITE_ARGUMENTS_H_
#define TANDEM_ENGINE_ADAPTER_CONFORMANCE_SUITE_ARGUMENTS_H_

#include <string>
#include <vector>

namespace tandem {

struct SuiteArguments {
  std::string limit_flag;  // of the server: steps that truncate an episode
  std::vector<float> actions = {0.5F, 0.1F, 0.2F, 0.3F};  // that it can take
  std::vector<std::string> server;  // the program, then its flags

  // --limit_flag=FLAG [--actions=A,B,...] SERVER [FLAG ...]. False if it is
  // something else.
  static bool Parse(std::vector<std::string> words);
  static const SuiteArguments& Get();
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CONFORMANCE_SUITE_ARGUMENTS_H_
