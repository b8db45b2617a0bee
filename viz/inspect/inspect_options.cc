#include "viz/inspect/inspect_options.h"

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "base/os/process_handle.h"
#include "base/printable.h"
#include "program/program_flags.h"
#include "schema/layout/service.h"

ABSL_FLAG(bool, watch, false,
          "true: prints again each second, until Ctrl-C. If NAME is missing, "
          "waits for it");
ABSL_FLAG(bool, json, false,
          "true: prints one JSON object; with --watch, one object a line. "
          "docs/inspector_keys.md lists the keys");

ABSL_FLAG(bool, keys, false,
          "true: prints the table of the JSON object's keys, without a NAME");
ABSL_FLAG(std::vector<std::string>, enable, {},
          "services to switch on in the engine, such as camera,viewport");
ABSL_FLAG(std::vector<std::string>, disable, {},
          "services to switch off in the engine");

namespace tandem {
namespace {

constexpr char kUsage[] =
    R"(Usage: COMMAND NAME [--watch] [--json]
       COMMAND list [--watch] [--json]
       COMMAND NAME [--enable=SERVICE,...] [--disable=SERVICE,...]

Shows the region NAME: which side is alive, what each side does, how fast, and
what is wrong. It only reads. It neither blocks nor wakes a side, and leaves no
trace. It also works if the engine is dead or the region is corrupt. NAME may
also be a segment of frames, or the run id of a segment.

Only --enable and --disable do more: they first attach beside the engine's
client, switch the services, and leave.

  list      one line for each region and segment of this machine, dead or alive
  --        treats the next word as NAME, so that a region named "list" can be
            shown

Speeds are means over half a second, the time that the command runs; with
--watch, over one second. The bars are a histogram of the engine's time for an
exchange, since the engine's start. A bar's label is the shortest time that the
bar counts.

Exit codes:
  0  success, possibly with warnings
  1  the region is missing, or not readable for this user
  2  invalid command line
  3  the region is corrupt, or one of its sides died
  4  the output could not be written, for example on a full disk
  5  a service could not be switched: the engine refused, or did not answer

Examples:
  COMMAND list
  COMMAND tandem --watch
  COMMAND tandem --json | jq .rates.exchanges_per_second)";

absl::Status CheckServices(const InspectOptions& options) {
  if (options.enable.empty() && options.disable.empty()) {
    return absl::OkStatus();
  }
  if (options.what == InspectOptions::What::kList || options.watch) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected --enable and --disable with one NAME, found "
                     "them with list or --watch");
  }
  for (const auto* names : {&options.enable, &options.disable}) {
    for (const std::string& name : *names) {
      if (!absl::c_linear_search(kServiceNames, name)) {
        return MakeError(ErrorCode::kInvalidArgument,
                         absl::StrCat("expected services of ",
                                      absl::StrJoin(kServiceNames, ", "),
                                      ", found '", Printable(name), "'"));
      }
    }
  }
  for (const std::string& name : options.enable) {
    if (absl::c_linear_search(options.disable, name)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat("expected each service once, found ", name,
                                    " with --enable and --disable"));
    }
  }
  return absl::OkStatus();
}

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
  TANDEM_RETURN_IF_ERROR(Flags().SetFromWords(words, &names));
  if (absl::GetFlag(FLAGS_keys)) {
    return InspectOptions{.what = InspectOptions::What::kKeys};
  }
  if (names.size() != 1) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected one NAME, or list, found ",
                     names.empty() ? "none" : absl::StrJoin(names, " ")));
  }
  InspectOptions options = {.name = names.front(),
                            .watch = absl::GetFlag(FLAGS_watch),
                            .json = absl::GetFlag(FLAGS_json),
                            .enable = absl::GetFlag(FLAGS_enable),
                            .disable = absl::GetFlag(FLAGS_disable)};
  if (options.name == "list" && !absl::c_linear_search(words, "--")) {
    options.what = InspectOptions::What::kList;
  }
  TANDEM_RETURN_IF_ERROR(CheckServices(options));
  return options;
}

std::string InspectCommand() {
  constexpr absl::string_view kInstalled = "tandem-inspect";
  const std::string path = ProgramPath();
  const bool is_installed = absl::StartsWith(
      absl::string_view(path).substr(path.find_last_of("/\\") + 1), kInstalled);
  return std::string(is_installed ? kInstalled : "tools/inspect");
}

std::string InspectHelp() {
  return Flags().Help(
      absl::StrReplaceAll(kUsage, {{"COMMAND", InspectCommand()}}));
}

}  // namespace tandem
