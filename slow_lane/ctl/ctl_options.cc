#include "slow_lane/ctl/ctl_options.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "slow_lane/ctl/command_words.h"
#include "slow_lane/ctl/ctl_help.h"
#include "slow_lane/wire/port.h"
#include "transport/base/printable.h"
#include "transport/base/quoted.h"
#include "transport/base/utf8.h"

namespace tandem::slow_lane {
namespace {

constexpr char kDefaultDaemon[] = "127.0.0.1:50055";
constexpr size_t kMostQuoted = 80;  // bytes
constexpr uint32_t kMostGpus = 8;   // of a TrainRunConfig

using Parsed = absl::StatusOr<decltype(CtlOptions::command)>;

absl::Status Expected(absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", expected, ", found ", found));
}

// `words` has flags only.
absl::Status NoWords(const CommandWords& words) {
  if (!words.words.empty()) {
    return Expected("flags only", Quoted(words.words.front()));
  }
  return words.behind.has_value() ? Expected("flags only", "'--'")
                                  : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RunIds(const CommandWords& words) {
  std::vector<std::string> run_ids = words.words;
  if (words.behind.has_value()) {
    run_ids.insert(run_ids.end(), words.behind->begin(), words.behind->end());
  }
  if (std::find(run_ids.begin(), run_ids.end(), "") != run_ids.end())
    return Expected("a RUN_ID", "''");
  return run_ids;
}

absl::StatusOr<std::string> OneRunId(const CommandWords& words) {
  absl::StatusOr<std::vector<std::string>> run_ids = RunIds(words);
  if (!run_ids.ok()) return run_ids.status();
  if (run_ids->size() != 1) {
    return Expected("one RUN_ID",
                    run_ids->empty() ? "none" : absl::StrJoin(*run_ids, " "));
  }
  return run_ids->front();
}

// The flag among `names` that was given; empty: none.
absl::StatusOr<std::string> AtMostOne(const CommandWords& words,
                                      const std::vector<std::string>& names) {
  std::string found;
  for (const std::string& name : names) {
    if (!words.Has(name)) continue;
    if (!found.empty()) {
      return Expected(
          absl::StrCat("at most one of --", absl::StrJoin(names, ", --")),
          absl::StrCat("--", found, " and --", name));
    }
    found = name;
  }
  return found;
}

absl::Status TakeCount(const CommandWords& words, const std::string& name,
                       std::optional<uint64_t>* count) {
  const std::optional<std::string> given = words.Last(name);
  if (!given.has_value()) return absl::OkStatus();
  uint64_t value = 0;
  if (!absl::SimpleAtoi(*given, &value) || value == 0 ||
      value > std::numeric_limits<int64_t>::max()) {
    return Expected(absl::StrCat("--", name, " N, a whole number above 0"),
                    Quoted(*given));
  }
  *count = value;
  return absl::OkStatus();
}

absl::Status TakeDuration(const CommandWords& words,
                          std::optional<uint64_t>* secs) {
  const std::optional<std::string> given = words.Last("max_duration");
  if (!given.has_value()) return absl::OkStatus();
  absl::Duration duration;
  if (!absl::ParseDuration(*given, &duration) || duration < absl::Seconds(1) ||
      duration == absl::InfiniteDuration()) {
    return Expected("--max_duration such as 90m, 2h30m or 45s, at least 1s",
                    Quoted(*given));
  }
  // The schedule has whole seconds.
  *secs = static_cast<uint64_t>(
      absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1))));
  return absl::OkStatus();
}

absl::Status TakeEnvironment(const CommandWords& words, SubmitCommand* submit) {
  const auto given = words.flags.find("env");
  if (given == words.flags.end()) return absl::OkStatus();
  for (const std::string& entry : given->second) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Expected("--env NAME=VALUE", Quoted(entry));
    }
    submit->environment.emplace_back(entry.substr(0, equals),
                                     entry.substr(equals + 1));
  }
  return absl::OkStatus();
}

absl::Status CheckConfigAlone(const CommandWords& words) {
  for (const auto& [name, values] : words.flags) {
    if (name != "config" && name != "watch" && name != "daemon" &&
        name != "token_file") {
      return Expected("in --config all that a run is",
                      absl::StrCat("--", name, " beside it"));
    }
  }
  return words.behind.has_value()
             ? Expected("either --config or a PROGRAM", "both")
             : absl::OkStatus();
}

Parsed ParseSubmit(const CommandWords& words) {
  SubmitCommand submit;
  submit.watch = words.Has("watch");
  if (!words.words.empty()) {
    return Expected("'--' before PROGRAM", Quoted(words.words.front()));
  }
  if (words.Has("config")) {
    submit.config_file = *words.Last("config");
    if (submit.config_file.empty()) return Expected("--config FILE", "''");
    if (absl::Status s = CheckConfigAlone(words); !s.ok()) return s;
    return submit;
  }
  submit.program = words.behind.value_or(std::vector<std::string>());
  if (submit.program.empty() || submit.program.front().empty()) {
    return Expected("-- PROGRAM [ARG]..., or --config FILE", "neither");
  }
  submit.name = words.Last("name").value_or("");
  if (const auto gpus = words.Last("gpus"); gpus.has_value()) {
    if (!absl::SimpleAtoi(*gpus, &submit.gpus) || submit.gpus > kMostGpus) {
      return Expected(absl::StrCat("--gpus N, from 0 to ", kMostGpus),
                      Quoted(*gpus));
    }
  }
  for (const absl::Status& status :
       {TakeEnvironment(words, &submit),
        TakeCount(words, "max_steps", &submit.max_steps),
        TakeCount(words, "step_stride", &submit.step_stride),
        TakeDuration(words, &submit.max_duration_secs)}) {
    if (!status.ok()) return status;
  }
  return submit;
}

Parsed ParseList(const CommandWords& words) {
  if (absl::Status s = NoWords(words); !s.ok()) return s;
  ListCommand list;
  list.json = words.Has("json");
  if (!words.Has("state")) return list;
  std::vector<std::string> known;
  for (int i = gymgui::trainer::RUN_STATUS_INIT;
       i <= gymgui::trainer::RUN_STATUS_TERM; ++i) {
    known.push_back(absl::AsciiStrToLower(NameOf(static_cast<RunState>(i))));
  }
  for (const absl::string_view name :
       absl::StrSplit(*words.Last("state"), ',')) {
    const auto found =
        std::find(known.begin(), known.end(), absl::AsciiStrToLower(name));
    if (found == known.end()) {
      return Expected(
          absl::StrCat("--state with names among ", absl::StrJoin(known, ",")),
          Quoted(name));
    }
    list.states.push_back(static_cast<RunState>(
        gymgui::trainer::RUN_STATUS_INIT + (found - known.begin())));
  }
  return list;
}

Parsed ParseWatch(const CommandWords& words) {
  absl::StatusOr<std::vector<std::string>> run_ids = RunIds(words);
  if (!run_ids.ok()) return run_ids.status();
  if (run_ids->empty()) return WatchCommand{};
  if (run_ids->size() > 1) {
    return Expected("one RUN_ID or none", absl::StrJoin(*run_ids, " "));
  }
  return WatchCommand{.run_id = run_ids->front(), .submitted = false};
}

template <RunsCommand::What what>
Parsed ParseRuns(const CommandWords& words) {
  absl::StatusOr<std::vector<std::string>> run_ids = RunIds(words);
  if (!run_ids.ok()) return run_ids.status();
  if (run_ids->empty() != words.Has("all")) {
    return words.Has("all") ? Expected("either --all or RUN_IDs", "both")
                            : Expected(what == RunsCommand::What::kCancel
                                           ? "RUN_ID..., or --all"
                                           : "RUN_ID...",
                                       "none");
  }
  return RunsCommand{.what = what, .run_ids = *std::move(run_ids)};
}

Parsed ParseLogs(const CommandWords& words) {
  absl::StatusOr<std::string> run_id = OneRunId(words);
  if (!run_id.ok()) return run_id.status();
  const absl::StatusOr<std::string> what =
      AtMostOne(words, {"stderr", "malformed"});
  if (!what.ok()) return what.status();
  return LogsCommand{.what = *what == "stderr" ? LogsCommand::What::kStderr
                             : *what == "malformed"
                                 ? LogsCommand::What::kMalformed
                                 : LogsCommand::What::kStdout,
                     .run_id = *std::move(run_id),
                     .follow = words.Has("follow")};
}

Parsed ParseExport(const CommandWords& words) {
  absl::StatusOr<std::string> run_id = OneRunId(words);
  if (!run_id.ok()) return run_id.status();
  const absl::StatusOr<std::string> what =
      AtMostOne(words, {"steps", "episodes", "lifecycle"});
  if (!what.ok()) return what.status();
  if (words.Last("out") == "") return Expected("--out FILE", "''");
  return ExportCommand{
      .what = *what == "episodes"    ? ExportCommand::What::kEpisodes
              : *what == "lifecycle" ? ExportCommand::What::kLifecycle
                                     : ExportCommand::What::kSteps,
      .run_id = *std::move(run_id),
      .out = words.Last("out").value_or("")};
}

Parsed ParseHealth(const CommandWords& words) {
  if (absl::Status s = NoWords(words); !s.ok()) return s;
  return HealthCommand{};
}

struct CommandSpec {
  absl::string_view name;
  const char* help;
  std::vector<FlagSpec> flags;  // without --daemon and --token_file
  Parsed (*parse)(const CommandWords& words);
};

const std::vector<CommandSpec>& Commands() {
  using What = RunsCommand::What;
  static const auto& commands = *new std::vector<CommandSpec>{
      {"submit",
       kSubmitHelp,
       {{"name", "NAME"},
        {"gpus", "N"},
        {"env", "NAME=VALUE", true},
        {"max_steps", "N"},
        {"max_duration", "TIME"},
        {"step_stride", "N"},
        {"watch", ""},
        {"config", "FILE"}},
       ParseSubmit},
      {"list", kListHelp, {{"state", "STATES"}, {"json", ""}}, ParseList},
      {"watch", kWatchHelp, {}, ParseWatch},
      {"cancel", kCancelHelp, {{"all", ""}}, ParseRuns<What::kCancel>},
      {"pause", kPauseHelp, {}, ParseRuns<What::kPause>},
      {"resume", kResumeHelp, {}, ParseRuns<What::kResume>},
      {"delete", kDeleteHelp, {}, ParseRuns<What::kDelete>},
      {"logs",
       kLogsHelp,
       {{"stderr", ""}, {"malformed", ""}, {"follow", ""}},
       ParseLogs},
      {"export",
       kExportHelp,
       {{"steps", ""}, {"episodes", ""}, {"lifecycle", ""}, {"out", "FILE"}},
       ParseExport},
      {"health", kHealthHelp, {}, ParseHealth},
  };
  return commands;
}

// Where the command's name is; --daemon and --token_file may come before it.
size_t FindCommand(std::span<const absl::string_view> words) {
  size_t at = 0;
  while (at < words.size() && absl::StartsWith(words[at], "-")) {
    at += words[at] == "--daemon" || words[at] == "--token_file" ? 2 : 1;
  }
  return std::min(at, words.size());
}

// HOST:PORT, or HOST, which has gRPC's own port. Of IPv6 only [HOST] may have
// one behind it.
bool HasPossiblePort(absl::string_view host_port) {
  const size_t colon = host_port.rfind(':');
  return colon == absl::string_view::npos ||
         (host_port.find(':') != colon && host_port[colon - 1] != ']') ||
         absl::EndsWith(host_port, "]") || IsPort(host_port.substr(colon + 1));
}

// As tandem.telemetry does: dns:[//SERVER/]HOST:PORT, ipv4: and ipv6: with
// addresses between commas, or HOST:PORT; sockets are gRPC's to check.
absl::Status CheckAddress(absl::string_view address, absl::string_view source) {
  absl::string_view hosts = address;
  if (absl::ConsumePrefix(&hosts, "dns:")) {
    hosts = hosts.substr(hosts.rfind('/') + 1);
  } else if (absl::StartsWith(hosts, "unix:") ||
             absl::StartsWith(hosts, "unix-abstract:")) {
    return absl::OkStatus();
  } else if (!absl::ConsumePrefix(&hosts, "ipv4:")) {
    absl::ConsumePrefix(&hosts, "ipv6:");
  }
  for (const absl::string_view host_port : absl::StrSplit(hosts, ',')) {
    if (HasPossiblePort(host_port)) continue;
    return Expected(
        absl::StrCat("HOST:PORT with a PORT from 1 to 65535, or unix:PATH, ",
                     source),
        Quoted(address));
  }
  return absl::OkStatus();
}

// Arguments are sent as text, and repeated in messages.
absl::Status CheckWords(std::span<const absl::string_view> words) {
  for (const absl::string_view word : words) {
    const size_t at = Utf8PrefixBytes(word);
    if (at == word.size()) continue;
    return Expected("arguments in UTF-8",
                    absl::StrFormat("the byte 0x%02x at offset %d of %s",
                                    static_cast<uint8_t>(word[at]), at,
                                    Quoted(PrintableHead(word, kMostQuoted))));
  }
  return absl::OkStatus();
}

absl::Status WithNext(const absl::Status& status, absl::string_view command) {
  return absl::InvalidArgumentError(
      absl::StrCat(status.message(), "\nNext: tandemctl ", command,
                   command.empty() ? "" : " ", "--help"));
}

}  // namespace

absl::StatusOr<CtlOptions> ParseCtlOptions(
    std::span<const absl::string_view> words,
    absl::string_view daemon_variable) {
  if (absl::Status s = CheckWords(words); !s.ok()) return WithNext(s, "");
  CtlOptions options;
  const size_t at = FindCommand(words);
  const std::vector<CommandSpec>& commands = Commands();
  const auto command = std::find_if(
      commands.begin(), commands.end(), [&](const CommandSpec& known) {
        return at < words.size() && known.name == words[at];
      });
  std::vector<absl::string_view> rest(words.begin(), words.begin() + at);
  std::vector<FlagSpec> flags;
  if (command != commands.end()) {
    rest.insert(rest.end(), words.begin() + at + 1, words.end());
    flags = command->flags;
  }
  flags.push_back({"daemon", "ADDRESS"});
  flags.push_back({"token_file", "FILE"});
  const absl::string_view name = command == commands.end() ? "" : command->name;

  const absl::StatusOr<CommandWords> parsed = ParseWords(rest, flags);
  if (!parsed.ok()) return WithNext(parsed.status(), name);
  if (parsed->help) {
    options.command =
        HelpCommand{command == commands.end() ? kCtlHelp : command->help};
    return options;
  }
  if (command == commands.end()) {
    const auto comma = [](std::string* out, const CommandSpec& known) {
      absl::StrAppend(out, known.name);
    };
    return WithNext(
        Expected(absl::StrCat("a command (",
                              absl::StrJoin(commands, ", ", comma), ")"),
                 at < words.size() ? Quoted(words[at]) : "none"),
        "");
  }
  if (const auto daemon = parsed->Last("daemon"); daemon.has_value()) {
    if (daemon->empty()) {
      return WithNext(Expected("--daemon HOST:PORT or unix:PATH", "''"), name);
    }
    options.daemon = *daemon;
    options.daemon_source = "by --daemon";
  } else if (!daemon_variable.empty()) {
    options.daemon = std::string(daemon_variable);
    options.daemon_source = "by TANDEM_DAEMON";
  } else {
    options.daemon = kDefaultDaemon;
    options.daemon_source = "by default";
  }
  if (const auto file = parsed->Last("token_file"); file.has_value()) {
    if (file->empty()) {
      return WithNext(Expected("--token_file FILE", "''"), name);
    }
    options.token_file = *file;
  }
  if (absl::Status s = CheckAddress(options.daemon, options.daemon_source);
      !s.ok()) {
    return WithNext(s, name);
  }
  Parsed done = command->parse(*parsed);
  if (!done.ok()) return WithNext(done.status(), name);
  options.command = *std::move(done);
  return options;
}

}  // namespace tandem::slow_lane
