// ProgramFlags: the command line of a program, parsed into absl flags.
// absl::ParseCommandLine exits with 1 on a bad flag, and its --help leaves out
// flags that are not defined in the program's own source file.
//
// Data flow: words -> absl flags; the source that defines a flag reads it by
// absl::GetFlag.
// Ownership: refers to absl's flags, which live as long as the program.
//
//   ABSL_FLAG(std::string, task, "", "name of the task");
//   const ProgramFlags flags("engine_adapter/");
//   if (ProgramFlags::WantHelp(words)) std::cout << flags.Help(usage);
//   absl::Status status = flags.SetFromWords(words);

#ifndef TANDEM_PROGRAM_PROGRAM_FLAGS_H_
#define TANDEM_PROGRAM_PROGRAM_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tandem {

// The type of a flag that a command line may contain several times. Each adds
// a value; empty values are refused.
struct RepeatedFlag {
  std::vector<std::string> values;
};
bool AbslParseFlag(absl::string_view text, RepeatedFlag* flag, std::string*);
std::string AbslUnparseFlag(const RepeatedFlag& flag);

class ProgramFlags {
 public:
  // The program's flags are those that sources below `folder` define, such as
  // "engine_adapter/". Abseil's own, such as --flagfile, are not among them.
  explicit ProgramFlags(absl::string_view folder);

  // Whether the words contain --help or -h, before any "--". If so, the caller
  // checks nothing else.
  static bool WantHelp(absl::Span<const absl::string_view> words);

  // Sets flags from --flag=value, --flag value, and for booleans --flag and
  // --noflag; one dash does as well. With `names`, it also takes words that are
  // not flags, and after "--" every word. kInvalidArgument for an unknown flag,
  // a bad or missing value, or a word that belongs to no flag; flags before it
  // are set.
  absl::Status SetFromWords(absl::Span<const absl::string_view> words,
                            std::vector<std::string>* names = nullptr) const;
  // kInvalidArgument: not a value of the flag's type.
  static absl::Status Set(absl::CommandLineFlag* flag, absl::string_view value);
  // kInvalidArgument with the flag's help as what was expected; for values that
  // the flag's type allows and the program does not.
  static absl::Status Refuse(const absl::CommandLineFlag& flag);

  // Returns nullptr if the program has no such flag.
  absl::CommandLineFlag* Find(absl::string_view name) const;
  // kInvalidArgument that names all flags but `except`. `where` is the file
  // that contains the word; empty: the command line.
  absl::Status Unknown(absl::string_view word, absl::string_view where = "",
                       absl::string_view except = "") const;

  // `usage`, then every flag with its default.
  std::string Help(absl::string_view usage) const;

 private:
  std::map<std::string, absl::CommandLineFlag*> flags_;
};

}  // namespace tandem

#endif  // TANDEM_PROGRAM_PROGRAM_FLAGS_H_
