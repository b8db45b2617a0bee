// CommandWords: the words of one command, taken apart by what flags it knows.
//
// Data flow: argv -> ParseWords -> flags by name, words, what is behind "--".
// By hand, not by a library: absl::flags has one set of flags for a whole
// program, and CLI11 throws; ten commands need no more than this.
//
//   constexpr FlagSpec kFlags[] = {{"gpus", "N"}, {"watch", ""}};
//   absl::StatusOr<CommandWords> words = ParseWords(argv_words, kFlags);
//   words->Has("watch");
//   words->Last("gpus");  // "2", of --gpus 2 or --gpus=2

#ifndef TANDEM_SLOW_LANE_CTL_COMMAND_WORDS_H_
#define TANDEM_SLOW_LANE_CTL_COMMAND_WORDS_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

struct FlagSpec {
  absl::string_view name;   // without "--"
  absl::string_view value;  // what its value is, for people; empty: has none
  bool repeated = false;
};

struct CommandWords {
  bool help = false;  // --help or -h is among them: nothing else counts
  std::map<std::string, std::vector<std::string>> flags;
  std::vector<std::string> words;                  // neither flags nor values
  std::optional<std::vector<std::string>> behind;  // "--"

  bool Has(const std::string& name) const { return flags.contains(name); }
  std::optional<std::string> Last(const std::string& name) const;
};

// kInvalidArgument: a flag that is not in `flags`, one without its value or
// with one too many, one given twice that is not `repeated`.
absl::StatusOr<CommandWords> ParseWords(
    std::span<const absl::string_view> words, std::span<const FlagSpec> flags);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_COMMAND_WORDS_H_
