#include "slow_lane/ctl/run_commands.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "program/standard_output.h"
#include "slow_lane/ctl/runs_text.h"
#include "slow_lane/ctl/submit_config.h"
#include "slow_lane/ctl/text_table.h"
#include "slow_lane/runs/durable_file.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_state.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {
namespace {

absl::StatusOr<std::string> ReadConfig(const std::string& file) {
  const absl::StatusOr<std::optional<std::string>> text =
      ReadIfExists(file == "-" ? "/dev/stdin" : file, kMaxConfigBytes + 1);
  if (!text.ok()) return text.status();
  if (!text->has_value()) {
    return absl::NotFoundError(
        absl::StrCat("--config: expected a file, found none at ", file));
  }
  if ((*text)->size() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config: expected at most ", kMaxConfigBytes,
                     " bytes, found more in ", file));
  }
  if (absl::Status s = CheckUtf8(**text, file); !s.ok()) return s;
  return **text;
}

absl::StatusOr<std::string> ConfigOf(const SubmitCommand& command) {
  if (!command.config_file.empty()) return ReadConfig(command.config_file);
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error);
  if (error) {
    return MakeSystemError("getcwd", "the current folder", error.value());
  }
  const char* const path = std::getenv("PATH");
  absl::StatusOr<std::string> program =
      FindProgram(command.program.front(), path == nullptr ? "" : path);
  if (!program.ok()) return program.status();
  return SubmitConfigJson(command, *program, folder);
}

absl::StatusOr<std::vector<std::string>> RunsThatGoOn(Connection* daemon) {
  const auto described = daemon->DescribeRuns({});
  if (!described.ok()) return described.status();
  std::vector<std::string> run_ids;
  for (const v1::RunDescription& run : described->runs()) {
    if (!IsFinal(run.record().status())) {
      run_ids.push_back(run.record().run_id());
    }
  }
  return run_ids;
}

absl::Status PauseOrResume(Connection* daemon, const std::string& run_id,
                           bool pause) {
  gymgui::trainer::ControlEvent event;
  event.set_run_id(run_id);
  if (pause) {
    event.set_pause(true);
  } else {
    event.set_resume(true);
  }
  return daemon->Control(event);
}

absl::string_view WordFor(RunsCommand::What what) {
  switch (what) {
    case RunsCommand::What::kCancel:
      return "ended";
    case RunsCommand::What::kPause:
      return "paused";
    case RunsCommand::What::kResume:
      return "resumed";
    case RunsCommand::What::kDelete:
      return "deleted";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> Submit(Connection* daemon,
                                   const SubmitCommand& command) {
  const absl::StatusOr<std::string> config = ConfigOf(command);
  if (!config.ok()) return config.status();
  const auto submitted = daemon->SubmitRun(*config);
  if (!submitted.ok()) return submitted.status();
  return submitted->run_id();
}

ExitCode RunList(Connection* daemon, const ListCommand& command) {
  auto described = daemon->DescribeRuns({});
  if (!described.ok()) return Fail(described.status());
  std::vector<v1::RunDescription> runs;
  for (const v1::RunDescription& run : described->runs()) {
    if (command.states.empty() ||
        std::find(command.states.begin(), command.states.end(),
                  run.record().status()) != command.states.end()) {
      runs.push_back(run);
    }
  }
  absl::Status printed;
  if (command.json) {
    described->mutable_runs()->Assign(runs.begin(), runs.end());
    printed = Print(RunsJson(*described));
  } else if (runs.empty()) {
    std::cerr << "no " << (command.states.empty() ? "" : "such ")
              << "runs; tandemctl submit -- PROGRAM starts one\n";
  } else {
    printed = Print(RunsTable(runs, absl::Now()));
  }
  if (described->daemon_state() != "ok") {
    std::cerr << "tandemctl: the daemon is not well: "
              << Printable(described->daemon_state()) << "\n";
  }
  return printed.ok() ? kDone : Fail(printed);
}

ExitCode RunRuns(Connection* daemon, const RunsCommand& command) {
  std::vector<std::string> run_ids = command.run_ids;
  if (run_ids.empty()) {
    absl::StatusOr<std::vector<std::string>> all = RunsThatGoOn(daemon);
    if (!all.ok()) return Fail(all.status());
    run_ids = *std::move(all);
    if (run_ids.empty()) std::cerr << "no run goes on\n";
  }
  std::vector<absl::Status> statuses;
  if (command.what == RunsCommand::What::kCancel) {
    statuses = daemon->CancelRuns(run_ids);
  } else {
    for (const std::string& run_id : run_ids) {
      statuses.push_back(
          command.what == RunsCommand::What::kDelete
              ? daemon->DeleteRun(run_id)
              : PauseOrResume(daemon, run_id,
                              command.what == RunsCommand::What::kPause));
    }
  }
  ExitCode code = kDone;
  std::string done;
  for (size_t i = 0; i < run_ids.size(); ++i) {
    if (statuses[i].ok()) {
      absl::StrAppend(&done, run_ids[i], " ", WordFor(command.what), "\n");
    } else {
      code = Fail(
          absl::Status(statuses[i].code(),
                       absl::StrCat(run_ids[i], ": ", statuses[i].message())));
    }
  }
  if (const absl::Status s = Print(done); !s.ok()) code = Fail(s);
  return code;
}

ExitCode RunHealth(Connection* daemon) {
  const auto health = daemon->GetHealth();
  if (!health.ok()) return Fail(health.status());
  const auto described = daemon->DescribeRuns({});
  if (!described.ok()) return Fail(described.status());
  const double up_secs = absl::ToDoubleSeconds(
      absl::Now() - absl::FromUnixSeconds(health->started_at().seconds()));
  const absl::Status printed = Print(absl::StrCat(
      "daemon    ", daemon->address(), ", pid ", health->pid(), ", up for ",
      AgeText(up_secs), "\nstate     ", Printable(described->daemon_state()),
      "\nruns      ",
      RunsSummary({described->runs().begin(), described->runs().end()}),
      "\nwatchers  ", described->watchers(), "\nqueued    ",
      CountText(described->queued_bytes()), " bytes, the oldest for ",
      AgeText(described->oldest_queued_secs()), "\n"));
  if (!printed.ok()) return Fail(printed);
  return health->healthy() && described->daemon_state() == "ok" ? kDone
                                                                : kNotWell;
}

}  // namespace tandem::slow_lane
