#include "viz/inspect/inspect_options.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/base/error.h"
#include "transport/base/quoted.h"

namespace tandem {

const char kInspectHelp[] =
    R"(Usage: tools/inspect NAME [--watch] [--json]
       tools/inspect list [--watch] [--json]

Looks into the region NAME: who is alive, what each side does, how fast, and
what is wrong. It only reads: no side waits for it, is woken by it, or can tell
that it was there. It works on a region whose engine is dead, too, and on one
that is corrupt. NAME may also be a segment of frames, or its run id.

  list      one line for each region and segment of this machine, dead or alive
  --watch   look again each second, until Ctrl-C; also waits for a NAME to come
  --json    one JSON object, with --watch one a line; viz/README.md has the keys
  --        behind it, "list" is a name like any other

Speeds are those of the half second that the command takes, or of the second
since the last look. The bars show how long the engine's work on an exchange
took, since its start; a bar's label is the shortest time that belongs to it.

Exit codes: 0 fine (also: something is slow or failed, and said to be; list;
Ctrl-C), 1 no such region, or none that this user may read, 2 bad usage, 3 the
region is there but corrupt, or a side of it died, 4 what was seen could not be
written, such as on a full disk.

Examples:
  tools/inspect list
  tools/inspect tandem --watch
  tools/inspect tandem --json | jq .rates.exchanges_per_second
)";

absl::StatusOr<InspectOptions> ParseInspectOptions(
    std::span<const absl::string_view> words) {
  InspectOptions options;
  const auto flags_end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != flags_end; ++word) {
    if (*word == "--help" || *word == "-h") {
      options.what = InspectOptions::What::kHelp;
      return options;
    }
  }
  std::vector<absl::string_view> names;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word == flags_end) continue;
    if (word > flags_end || !absl::StartsWith(*word, "-")) {
      names.push_back(*word);
    } else if (*word == "--watch") {
      options.watch = true;
    } else if (*word == "--json") {
      options.json = true;
    } else {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("expected --watch, --json or --help, found ",
                       Quoted(*word)));
    }
  }
  if (names.size() != 1) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected one NAME, or list, found ",
                     names.empty() ? "none" : absl::StrJoin(names, " ")));
  }
  options.name = std::string(names.front());
  if (options.name == "list" && flags_end == words.end()) {
    options.what = InspectOptions::What::kList;
  }
  return options;
}

}  // namespace tandem
