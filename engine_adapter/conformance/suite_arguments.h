// SuiteArguments: the server under test, and what the suite must know of it.
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
  std::string limit_flag;      // of the server: steps that truncate an episode
  std::vector<float> actions;  // valid ones
  std::vector<std::string> server;  // the program, then its flags

  // --limit_flag=FLAG [--actions=A,B,...] SERVER [FLAG ...]. False for anything
  // else. Once.
  static bool Parse(std::vector<std::string> words);
  static const SuiteArguments& Get();
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CONFORMANCE_SUITE_ARGUMENTS_H_
