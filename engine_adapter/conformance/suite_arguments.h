// SuiteArguments: the engine's program under test, and what the suite must know
// of it.
//
// Data flow: command line -> SuiteArguments -> the probe and every rule.
// Ownership: main parses once, before any rule runs.
//
//   absl::Status status =
//       SuiteArguments::Parse({"--limit_flag=max_steps", "engine",
//       "--task=X"});
//   SuiteArguments::Get().engine;  // {"/path/of/engine", "--task=X"}

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

struct SuiteArguments {
  std::string limit_flag;      // of the engine: steps that truncate an episode;
                               // "": unknown
  std::vector<float> actions;  // valid ones
  std::string filter;          // a part of the names of the wanted rules
  uint32_t rule_secs = 0;      // after which a rule's engine is killed
  bool help = false;           // print Help(), and do nothing else
  bool list = false;           // print the rules' names, and do nothing else
  bool detect = false;         // print what the engine has; check no rule
  std::vector<std::string> engine;  // the program's path, then its flags

  // [FLAG ...] ENGINE [FLAG OF THE ENGINE ...]. ENGINE is the path of a
  // program, or its name in PATH, or a Python file. Legal once.
  // kInvalidArgument: a wrong flag, or no such program.
  static absl::Status Parse(const std::vector<std::string>& words);
  static const SuiteArguments& Get();
  static std::string Help();
};

}  // namespace tandem
