// The inspector: shows regions. The command line is in inspect_options.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "program/screen.h"
#include "viz/core/engine_control.h"
#include "viz/inspect/each_second.h"
#include "viz/inspect/inspect_options.h"
#include "viz/inspect/inspection.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {
namespace {

enum ExitCode {
  kFine = 0,
  kNoSuchRegion = 1,
  kUsage = 2,
  kBroken = 3,
  kNotWritten = 4,
  kNotSwitched = 5,
};

// The output, and its exit code.
struct Shown {
  std::string text;
  ExitCode code = kFine;
};

Shown ShowOne(const InspectOptions& options, const Inspection& inspection) {
  Shown shown;
  shown.text = options.json
                   ? absl::StrCat(JsonOf(inspection), "\n")
                   : TextOf(inspection, absl::Now(), absl::LocalTimeZone());
  if (CodeOf(inspection.status) == ErrorCode::kInvalidArgument) {
    shown.code = kUsage;
  } else if (!inspection.status.ok()) {
    shown.code = kNoSuchRegion;
  } else if (!inspection.verdict.problems.empty()) {
    shown.code = kBroken;
  }
  return shown;
}

Shown ShowAll(const InspectOptions& options,
              const std::vector<Inspection>& inspections) {
  return {options.json ? absl::StrCat(ListJsonOf(inspections), "\n")
                       : ListTextOf(inspections)};
}

Shown InspectAndShow(const InspectOptions& options, Inspector* inspector) {
  return options.what == InspectOptions::What::kList
             ? ShowAll(options, inspector->InspectAll())
             : ShowOne(options, inspector->InspectName(options.name));
}

// Services before one that fails stay switched.
absl::Status SwitchServices(const InspectOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(
      EngineControl control,
      EngineControl::Attach(options.name, "tandem-inspect"));
  for (const bool on : {false, true}) {
    for (const std::string& name : on ? options.enable : options.disable) {
      TANDEM_RETURN_IF_ERROR(control.SwitchService(name, on));
    }
  }
  return absl::OkStatus();
}

// Makes two inspections, to compute rates; one if it finds a problem or no
// entry.
Shown InspectOnce(const InspectOptions& options) {
  constexpr absl::Duration kBetween = absl::Milliseconds(500);
  Inspector inspector;
  if (options.what == InspectOptions::What::kList) {
    if (inspector.InspectAll().empty()) return ShowAll(options, {});
  } else {
    const Inspection first = inspector.InspectName(options.name);
    if (!first.status.ok() || !first.verdict.problems.empty()) {
      return ShowOne(options, first);
    }
  }
  absl::SleepFor(kBetween);
  return InspectAndShow(options, &inspector);
}

// Returns `code`, or reports that writing the output failed. A closed pipe is
// no error.
ExitCode EndBy(ExitCode code, const absl::Status& printed) {
  if (printed.ok() || CodeOf(printed) == ErrorCode::kPeerGone) return code;
  const std::string message(printed.message());
  std::fprintf(stderr,
               "tandem: expected to write the output, found %s\nNext: free "
               "space, or write to another file\n",
               message.c_str());
  return kNotWritten;
}

ExitCode Watch(const InspectOptions& options) {
  Inspector inspector;
  const auto text = [&](bool replaces) {
    const std::string shown = InspectAndShow(options, &inspector).text;
    // An empty line separates the blocks.
    return options.json || replaces ? shown : absl::StrCat(shown, "\n");
  };
  return EndBy(kFine, ShowEachSecond(text));
}

ExitCode Main(const std::vector<absl::string_view>& words) {
  const absl::StatusOr<InspectOptions> options = ParseInspectOptions(words);
  if (!options.ok()) {
    const std::string message(options.status().message());
    std::fprintf(stderr, "tandem: %s\nNext: %s --help\n", message.c_str(),
                 InspectCommand().c_str());
    return kUsage;
  }
  if (options->what == InspectOptions::What::kHelp) {
    return EndBy(kFine, Print(InspectHelp()));
  }
  if (options->what == InspectOptions::What::kKeys) {
    return EndBy(kFine, Print(KeysTable()));
  }
  if (options->watch) return Watch(*options);
  if (!options->enable.empty() || !options->disable.empty()) {
    const absl::Status switched = SwitchServices(*options);
    if (!switched.ok()) {
      const std::string message(switched.message());
      const bool missing = CodeOf(switched) == ErrorCode::kNotReady;
      std::fprintf(stderr, "tandem: %s\nNext: %s %s\n", message.c_str(),
                   InspectCommand().c_str(),
                   missing ? "list" : options->name.c_str());
      return missing ? kNoSuchRegion : kNotSwitched;
    }
  }
  const Shown shown = InspectOnce(*options);
  const bool is_error = shown.code == kNoSuchRegion || shown.code == kUsage;
  if (is_error && !options->json) {
    std::fprintf(stderr, "tandem: %sNext: %s %s\n", shown.text.c_str(),
                 InspectCommand().c_str(),
                 shown.code == kUsage ? "--help" : "list");
    return shown.code;
  }
  return EndBy(shown.code, Print(shown.text));
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  return tandem::Main(std::vector<absl::string_view>(argv + 1, argv + argc));
}
