#include "viz/inspect/inspect_options.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "program/program_flags.h"
#include "transport/base/error.h"

ABSL_FLAG(bool, watch, false,
          "true: again each second, until Ctrl-C; waits for a missing NAME");
ABSL_FLAG(bool, json, false,
          "true: one JSON object, with --watch one in each line; viz/README.md "
          "has the keys");

namespace tandem {
namespace {

constexpr char kUsage[] =
    R"(Usage: tools/inspect NAME [--watch] [--json]
       tools/inspect list [--watch] [--json]

Shows the region NAME: which side is alive, what each side does, how fast, and
what is wrong. It only reads: it blocks and wakes no side, and leaves no trace.
It also works if the engine is dead or the region is corrupt. NAME may also be
a segment of frames, or its run id.

  list      one line for each region and segment of this machine, dead or alive
  --        after it, "list" is the NAME of a region

Speeds are means over the half second that the command takes, with --watch over
a second. The bars are a histogram of the engine's time for an exchange, since
the engine's start. A bar's label is the shortest time that the bar counts.

Exit codes: 0 success (warnings possible), 1 no such region, or this user may
not read it, 2 wrong command line, 3 the region is corrupt, or one of its sides
died, 4 the output could not be written, such as on a full disk.

Examples:
  tools/inspect list
  tools/inspect tandem --watch
  tools/inspect tandem --json | jq .rates.exchanges_per_second)";

const ProgramFlags& Flags() {
  static const ProgramFlags flags("viz/inspect/");
  return flags;
}

}  // namespace

absl::StatusOr<InspectOptions> ParseInspectOptions(
    std::span<const absl::string_view> words) {
  if (ProgramFlags::WantHelp(words)) {
    return InspectOptions{.what = InspectOptions::What::kHelp};
  }
  std::vector<std::string> names;
  RETURN_IF_ERROR(Flags().SetFromWords(words, &names));
  if (names.size() != 1) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected one NAME, or list, found ",
                     names.empty() ? "none" : absl::StrJoin(names, " ")));
  }
  InspectOptions options = {.name = names.front(),
                            .watch = absl::GetFlag(FLAGS_watch),
                            .json = absl::GetFlag(FLAGS_json)};
  if (options.name == "list" && !absl::c_linear_search(words, "--")) {
    options.what = InspectOptions::What::kList;
  }
  return options;
}

std::string InspectHelp() { return Flags().Help(kUsage); }

}  // namespace tandem
