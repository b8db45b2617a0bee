#include "viz/core/viewer_options.h"

#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "transport/base/error.h"
#include "transport/base/quoted.h"
#include "viz/core/key_map.h"

namespace tandem {
namespace {

constexpr absl::string_view kUsage =
    R"(Usage: viewer [--run=RUN ...] [flags]      (bazel run //viz:viewer -- ...)

Shows what runs on this machine, live: the frames that an engine or a training
worker publishes in shared memory, with reward, return and step rate. It only
reads; no run waits for it, and none is slower for being paused here.

Without --run it opens on a list of what runs now. A RUN is the name of an
engine's region, or the run id of a frame segment (mosaic.fastlane.RUN).

The word beside the picture says what you see:
  connected             a new frame came within the last 0.4 s
  stale                 no new frame for as long as it says: the run is slow,
                        busy, stopped, or gone without a word
  reconnecting          the writer left, died or broke its ring; the viewer
                        attaches again by itself
  fastlane-unavailable  nothing of that name publishes frames; the viewer waits

Examples:
  viewer --run=tandem
  viewer --run=01KATF46 --run_mode=policy_eval --eval_summary=out/eval_summary.json
  viewer --run=tandem --offscreen --snapshot=out.png --after=10    (no display)

Over SSH, where no window opens, --offscreen --snapshot works.
Exit codes: 0 all is well, 1 no snapshot could be made, 2 bad usage.
)";

struct Flag {
  absl::string_view name;
  absl::string_view value;  // "": a boolean
  absl::string_view help;
  absl::string_view initially;
  bool (*set)(absl::string_view value, ViewerOptions* options);
};

template <std::string ViewerOptions::*member>
bool SetText(absl::string_view value, ViewerOptions* options) {
  options->*member = std::string(value);
  return !value.empty();
}

template <bool ViewerOptions::*member>
bool SetBool(absl::string_view value, ViewerOptions* options) {
  return absl::SimpleAtob(value, &(options->*member));
}

// One of two words.
template <bool ViewerOptions::*member>
bool SetWord(absl::string_view value, absl::string_view yes,
             absl::string_view no, ViewerOptions* options) {
  options->*member = value == yes;
  return value == yes || value == no;
}

bool SetSize(absl::string_view value, ViewerOptions* options) {
  const std::vector<absl::string_view> sides = absl::StrSplit(value, 'x');
  return sides.size() == 2 && absl::SimpleAtoi(sides[0], &options->width) &&
         absl::SimpleAtoi(sides[1], &options->height) && options->width >= 64 &&
         options->width <= 16384 && options->height >= 64 &&
         options->height <= 16384;
}

constexpr Flag kFlags[] = {
    {"run", "RUN", "a run to show; again for another tab", "",
     [](absl::string_view value, ViewerOptions* options) {
       options->runs.emplace_back(value);
       return !value.empty();
     }},
    {"run_mode", "MODE", "train, or policy_eval: shows eval_summary.json too",
     "train",
     [](absl::string_view value, ViewerOptions* options) {
       return SetWord<&ViewerOptions::policy_eval>(value, "policy_eval",
                                                   "train", options);
     }},
    {"eval_summary", "FILE", "the summary, read again every second",
     "var/trainer/runs/RUN/eval_summary.json",
     SetText<&ViewerOptions::eval_summary>},
    {"agent_id", "ID", "shown beside the run's name", "",
     SetText<&ViewerOptions::agent_id>},
    {"mode_label", "TEXT", "shown beside the state", "Fast lane",
     SetText<&ViewerOptions::mode_label>},
    {"theme", "THEME", "dark or light", "dark",
     [](absl::string_view value, ViewerOptions* options) {
       return SetWord<&ViewerOptions::dark>(value, "dark", "light", options);
     }},
    {"size", "WIDTHxHEIGHT", "of the window, 64 to 16384 each", "1280x800",
     SetSize},
    {"picture_only", "", "nothing around the picture", "false",
     SetBool<&ViewerOptions::picture_only>},
    {"shortcuts", "", "the keys below; --shortcuts=false: none of them", "true",
     SetBool<&ViewerOptions::shortcuts>},
    {"snapshots", "FOLDER", "where the key S saves pictures", ".",
     SetText<&ViewerOptions::snapshots>},
    {"snapshot", "FILE.png", "save the window there, then leave", "",
     SetText<&ViewerOptions::snapshot>},
    {"after", "N",
     "frames published while the viewer looked, in every tab, "
     "before --snapshot",
     "1",
     [](absl::string_view value, ViewerOptions* options) {
       return absl::SimpleAtoi(value, &options->after) && options->after >= 1;
     }},
    {"timeout", "SECONDS", "how long --snapshot waits for those frames", "30",
     [](absl::string_view value, ViewerOptions* options) {
       return absl::SimpleAtod(value, &options->timeout_secs) &&
              options->timeout_secs > 0;
     }},
    {"offscreen", "", "needs no display; only with --snapshot", "false",
     SetBool<&ViewerOptions::offscreen>},
};

const Flag* Find(absl::string_view name) {
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

absl::Status Unknown(absl::string_view word) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("expected one of the flags ",
                   absl::StrJoin(kFlags, " ",
                                 [](std::string* text, const Flag& flag) {
                                   absl::StrAppend(text, "--", flag.name);
                                 }),
                   ", found '", word, "'; --help explains them"));
}

absl::Status Bad(const Flag& flag, absl::string_view found) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("--", flag.name, ": expected ",
                   flag.value.empty() ? "true or false" : flag.value, " (",
                   flag.help, "); found ", found));
}

}  // namespace

absl::StatusOr<ViewerOptions> ParseViewerOptions(
    std::span<const absl::string_view> words) {
  ViewerOptions options;
  for (const absl::string_view word : words) {
    if (word == "--help" || word == "-h") {
      options.help_wanted = true;
      return options;
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const absl::string_view word = words[i];
    absl::string_view name = word;
    if (!absl::ConsumePrefix(&name, "--")) return Unknown(word);
    const size_t equals = name.find('=');
    const bool has_value = equals != absl::string_view::npos;
    absl::string_view value = has_value ? name.substr(equals + 1) : "";
    name = name.substr(0, equals);
    const Flag* flag = Find(name);
    if (flag == nullptr && !has_value && absl::ConsumePrefix(&name, "no")) {
      flag = Find(name);
      if (flag != nullptr && !flag->value.empty()) flag = nullptr;
      value = "false";
    } else if (flag != nullptr && !has_value) {
      if (flag->value.empty()) {
        value = "true";
      } else if (++i < words.size()) {
        value = words[i];
      } else {
        return Bad(*flag, "nothing");
      }
    }
    if (flag == nullptr) return Unknown(word);
    if (!flag->set(value, &options)) {
      return Bad(*flag, Quoted(value));
    }
  }
  if (options.offscreen && options.snapshot.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected --snapshot=FILE.png with --offscreen, which "
                     "shows nothing otherwise; found none");
  }
  return options;
}

std::string ViewerHelp() {
  std::string text = absl::StrCat(kUsage, "\nFlags:\n");
  for (const Flag& flag : kFlags) {
    absl::StrAppend(&text, "  --", flag.name, flag.value.empty() ? "" : "=",
                    flag.value, "\n      ", flag.help);
    if (!flag.initially.empty()) {
      absl::StrAppend(&text, "\n      default: ", flag.initially);
    }
    absl::StrAppend(&text, "\n");
  }
  return absl::StrCat(text, "\nKeys:\n", KeyHelpText(2));
}

}  // namespace tandem
