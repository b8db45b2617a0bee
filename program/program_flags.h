// ProgramFlags: a program's absl flags, with our own words and exit codes:
// absl::ParseCommandLine exits with 1 on a bad flag, and its --help leaves out
// flags that are not defined in the program's own source file.
//
// Data flow: words -> absl flags; whoever owns a flag reads it by
// absl::GetFlag.
// Ownership: refers to absl's flags, which live as long as the program.
//
//   ABSL_FLAG(std::string, task, "", "what to run");
//   const ProgramFlags flags("engine_adapter/");
//   if (ProgramFlags::WantHelp(words)) std::cout << flags.Help(usage);
//   absl::Status status = flags.SetFromWords(words);

#ifndef TANDEM_PROGRAM_PROGRAM_FLAGS_H_
#define TANDEM_PROGRAM_PROGRAM_FLAGS_H_

#include <map>
#include <string>

#include "absl/flags/commandlineflag.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tandem {

class ProgramFlags {
 public:
  // The program's are those that sources below `folder` define, such as
  // "engine_adapter/"; abseil has flags of its own (--flagfile and more).
  explicit ProgramFlags(absl::string_view folder);

  // Whether --help or -h is among them: then nothing else is to be checked.
  static bool WantHelp(absl::Span<const absl::string_view> words);

  // Sets flags from --flag=value, --flag value, and for booleans --flag and
  // --noflag; one dash does as well. kInvalidArgument for an unknown flag, a
  // bad or missing value, or a word that belongs to no flag; some flags before
  // it may be set.
  absl::Status SetFromWords(absl::Span<const absl::string_view> words) const;
  // kInvalidArgument: the value is none of the flag's.
  static absl::Status Set(absl::CommandLineFlag* flag, absl::string_view value);

  // Null: the program has none of that name.
  absl::CommandLineFlag* Find(absl::string_view name) const;
  // kInvalidArgument that names all flags but `except`; `where` it was found,
  // such as a file, or nothing.
  absl::Status Unknown(absl::string_view word, absl::string_view where = "",
                       absl::string_view except = "") const;

  // `usage`, then every flag with its default.
  std::string Help(absl::string_view usage) const;

 private:
  std::map<std::string, absl::CommandLineFlag*> flags_;
};

}  // namespace tandem

#endif  // TANDEM_PROGRAM_PROGRAM_FLAGS_H_
