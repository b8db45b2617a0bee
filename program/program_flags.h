// ProgramFlags: the command line of a program, parsed into absl flags.
// absl::ParseCommandLine exits with 1 for an invalid flag, and its --help omits
// flags that are not defined in the program's own source file.
//
// Data flow: words -> absl flags; the source that defines a flag reads it by
// absl::GetFlag.
// Ownership: refers to absl's flags, which are static.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tandem {

// The type of a flag that may occur several times. Each occurrence adds a
// value; empty values are refused.
struct RepeatedFlag {
  std::vector<std::string> values;
};
bool AbslParseFlag(absl::string_view text, RepeatedFlag* flag, std::string*);
std::string AbslUnparseFlag(const RepeatedFlag& flag);

class ProgramFlags {
 public:
  // The program's flags are those of sources below `folder`, such as
  // "engine_adapter/". They do not include Abseil's flags, such as --flagfile.
  // Unknown lists `others`, too: names of flags that the caller handles itself.
  explicit ProgramFlags(absl::string_view folder,
                        std::vector<std::string> others = {});

  // Whether the words contain --help or -h, before any "--". If so, the caller
  // checks nothing else.
  static bool WantHelp(absl::Span<const absl::string_view> words);

  // Sets flags from --flag=value, --flag value, and for booleans --flag and
  // --noflag; one dash is enough. `names`, if not nullptr, gets the words that
  // are not flags, and all words after "--". kInvalidArgument: unknown flag,
  // invalid or missing value, or a word that is not a flag. Flags before it are
  // set.
  absl::Status SetFromWords(absl::Span<const absl::string_view> words,
                            std::vector<std::string>* names = nullptr) const;
  // kInvalidArgument: not a value of the flag's type.
  static absl::Status Set(absl::CommandLineFlag* flag, absl::string_view value);
  // Returns kInvalidArgument, with the flag's help as the expected value. For
  // values that the flag's type allows, but the program does not.
  static absl::Status Refuse(const absl::CommandLineFlag& flag);

  // Returns nullptr if the program has no such flag.
  absl::CommandLineFlag* Find(absl::string_view name) const;
  // Returns kInvalidArgument with the names of all flags except `except`.
  // `where` is the file that contains the word; empty: the command line.
  absl::Status Unknown(absl::string_view word, absl::string_view where = "",
                       absl::string_view except = "") const;

  // Returns `usage`, then all flags with their defaults.
  std::string Help(absl::string_view usage) const;

 private:
  std::map<std::string, absl::CommandLineFlag*> flags_;
  std::vector<std::string> others_;
};

}  // namespace tandem
