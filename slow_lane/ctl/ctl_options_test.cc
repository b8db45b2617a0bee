#include "slow_lane/ctl/ctl_options.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RUN_STATUS_EXEC;
using gymgui::trainer::RUN_STATUS_FAULT;

absl::StatusOr<CtlOptions> Parse(std::vector<absl::string_view> words,
                                 absl::string_view variable = "") {
  return ParseCtlOptions(words, variable);
}

template <typename Command>
Command Parsed(std::vector<absl::string_view> words) {
  const absl::StatusOr<CtlOptions> options = Parse(std::move(words));
  EXPECT_TRUE(options.ok()) << options.status();
  const Command* const command =
      options.ok() ? std::get_if<Command>(&options->command) : nullptr;
  EXPECT_NE(command, nullptr);
  return command == nullptr ? Command() : *command;
}

// What is wrong, if it is said with what to do next.
std::string Refusal(std::vector<absl::string_view> words) {
  const absl::Status status = Parse(std::move(words)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "\nNext: tandemctl "));
  return std::string(status.message());
}

TEST(CtlOptions, FindsTheDaemon) {
  EXPECT_EQ(Parse({"list"})->daemon, "127.0.0.1:50055");
  EXPECT_EQ(Parse({"list"}, "unix:/x")->daemon, "unix:/x");
  EXPECT_EQ(Parse({"list", "--daemon", "h:1"}, "unix:/x")->daemon, "h:1");
  EXPECT_EQ(Parse({"--daemon=h:1", "list"})->daemon, "h:1");
  EXPECT_EQ(Parse({"--daemon", "list", "list"})->daemon, "list");
  Refusal({"list", "--daemon="});
}

TEST(CtlOptions, TakesATokenFile) {
  EXPECT_EQ(Parse({"list"})->token_file, "");
  EXPECT_EQ(Parse({"list", "--token_file", "t"})->token_file, "t");
  EXPECT_EQ(Parse({"--token_file", "list", "list"})->token_file, "list");
  EXPECT_EQ(Parse({"submit", "--config", "c", "--token_file=t"})->token_file,
            "t");
  Refusal({"list", "--token_file="});
}

TEST(CtlOptions, RefusesAPortThatCannotBe) {
  for (const absl::string_view address :
       {"host:99999", "host:0", "host:65536", "host:", "host:-1", "host:+1",
        "host: 1", "host:1x", "host:http", "127.0.0.1:4294967297", ":0",
        "[::1]:99999", "[::1]:", "dns:host:99999", "dns:///host:99999",
        "dns://8.8.8.8:53/host:99999", "ipv4:127.0.0.1:65536",
        "ipv4:127.0.0.1:1,127.0.0.2:5x", "ipv6:[::1]:65536"}) {
    const std::string refusal = Refusal({"list", "--daemon", address});
    EXPECT_TRUE(absl::StrContains(
        refusal, absl::StrCat("by --daemon, found '", address, "'")));
    EXPECT_TRUE(absl::StrContains(refusal, "from 1 to 65535"));
  }
  EXPECT_TRUE(absl::StrContains(Parse({"list"}, "h:99999").status().message(),
                                "by TANDEM_DAEMON, found 'h:99999'"));
  // Whose flag counts, and of whom nobody asks.
  EXPECT_TRUE(Parse({"list", "--daemon=h:1"}, "h:99999").ok());
  EXPECT_TRUE(Parse({"list", "--help"}, "h:99999").ok());
}

TEST(CtlOptions, TakesEveryAddressOfGrpc) {
  for (const absl::string_view address :
       {"host:1", "host:65535", "host", "[::1]:50055", "[::1]", "::1",
        "fe80::1:99999", "unix:/tmp/a:99999", "unix:///tmp/a", "unix:a",
        "unix-abstract:a:99999", "dns:///host:50055", "dns:host", "dns:///host",
        "dns:///[::1]:50055", "dns:///::1", "ipv4:127.0.0.1:50055",
        "ipv4:127.0.0.1:1,127.0.0.2:2", "ipv6:[::1]:50055"}) {
    const absl::StatusOr<CtlOptions> options =
        Parse({"list", "--daemon", address});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->daemon, address);
  }
}

TEST(CtlOptions, SubmitTakesAProgramWithItsOwnFlags) {
  const auto submit = Parsed<SubmitCommand>(
      {"submit", "--name", "ant", "--gpus=2", "--env", "A=b=c", "--env=D=",
       "--max_steps", "1000", "--max_duration", "90m", "--step_stride", "10",
       "--watch", "--", "python", "train.py", "--name", "x"});
  EXPECT_EQ(submit.name, "ant");
  EXPECT_EQ(submit.gpus, 2u);
  EXPECT_EQ(submit.environment,
            (std::vector<std::pair<std::string, std::string>>{{"A", "b=c"},
                                                              {"D", ""}}));
  EXPECT_EQ(submit.max_steps, 1000u);
  EXPECT_EQ(submit.max_duration_secs, 5400u);
  EXPECT_EQ(submit.step_stride, 10u);
  EXPECT_TRUE(submit.watch);
  EXPECT_EQ(submit.program,
            (std::vector<std::string>{"python", "train.py", "--name", "x"}));
}

TEST(CtlOptions, DurationsAreRoundedUpToSeconds) {
  EXPECT_EQ(Parsed<SubmitCommand>({"submit", "--max_duration=1.5s", "--", "a"})
                .max_duration_secs,
            2u);
}

TEST(CtlOptions, SubmitTakesAConfigAlone) {
  EXPECT_EQ(Parsed<SubmitCommand>({"submit", "--config", "-"}).config_file,
            "-");
  EXPECT_TRUE(Parsed<SubmitCommand>({"submit", "--config=f", "--watch"}).watch);
  Refusal({"submit", "--config", "f", "--name", "x"});
  Refusal({"submit", "--config", "f", "--", "python"});
  Refusal({"submit", "--config", ""});
}

TEST(CtlOptions, SubmitRefusesWhatCannotBe) {
  EXPECT_TRUE(absl::StrContains(Refusal({"submit", "python"}), "'--'"));
  Refusal({"submit"});
  Refusal({"submit", "--"});
  Refusal({"submit", "--gpus", "9", "--", "a"});
  Refusal({"submit", "--gpus", "-1", "--", "a"});
  Refusal({"submit", "--env", "A", "--", "a"});
  Refusal({"submit", "--env", "=1", "--", "a"});
  Refusal({"submit", "--max_steps", "0", "--", "a"});
  Refusal({"submit", "--max_steps", "1e3", "--", "a"});
  Refusal({"submit", "--step_stride", "18446744073709551615", "--", "a"});
  Refusal({"submit", "--max_duration", "90", "--", "a"});
  Refusal({"submit", "--max_duration", "inf", "--", "a"});
  Refusal({"submit", "--max_duration", "-5m", "--", "a"});
}

TEST(CtlOptions, ListTakesStatesByName) {
  const auto list =
      Parsed<ListCommand>({"list", "--state", "executing,FAULTED", "--json"});
  EXPECT_EQ(list.states,
            (std::vector<RunState>{RUN_STATUS_EXEC, RUN_STATUS_FAULT}));
  EXPECT_TRUE(list.json);
  EXPECT_TRUE(absl::StrContains(Refusal({"list", "--state", "dead"}),
                                "initialized,handshake,ready,executing"));
  Refusal({"list", "--state", ""});
  Refusal({"list", "x"});
}

TEST(CtlOptions, WatchTakesOneRunOrNone) {
  EXPECT_EQ(Parsed<WatchCommand>({"watch"}).run_id, "");
  EXPECT_EQ(Parsed<WatchCommand>({"watch", "a"}).run_id, "a");
  Refusal({"watch", "a", "b"});
  Refusal({"watch", ""});
}

TEST(CtlOptions, CancelTakesRunsOrAll) {
  EXPECT_EQ(Parsed<RunsCommand>({"cancel", "a", "b"}).run_ids,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(Parsed<RunsCommand>({"cancel", "--all"}).run_ids.empty());
  Refusal({"cancel"});
  Refusal({"cancel", "--all", "a"});
  Refusal({"cancel", ""});
}

TEST(CtlOptions, OnlyCancelTakesAll) {
  for (const absl::string_view command : {"pause", "resume", "delete"}) {
    Refusal({command});
    Refusal({command, "--all"});
  }
  EXPECT_EQ(Parsed<RunsCommand>({"delete", "a"}).what,
            RunsCommand::What::kDelete);
  EXPECT_EQ(Parsed<RunsCommand>({"pause", "a"}).what,
            RunsCommand::What::kPause);
  EXPECT_EQ(Parsed<RunsCommand>({"resume", "a"}).what,
            RunsCommand::What::kResume);
}

TEST(CtlOptions, LogsAndExportTakeOneKind) {
  EXPECT_EQ(Parsed<LogsCommand>({"logs", "a"}).what,
            LogsCommand::What::kStdout);
  EXPECT_TRUE(
      Parsed<LogsCommand>({"logs", "--follow", "--stderr", "a"}).follow);
  EXPECT_EQ(Parsed<LogsCommand>({"logs", "a", "--malformed"}).what,
            LogsCommand::What::kMalformed);
  Refusal({"logs", "a", "--stderr", "--malformed"});
  Refusal({"logs"});
  EXPECT_EQ(Parsed<ExportCommand>({"export", "a"}).what,
            ExportCommand::What::kSteps);
  EXPECT_EQ(Parsed<ExportCommand>({"export", "a", "--out", "f"}).out, "f");
  EXPECT_EQ(Parsed<ExportCommand>({"export", "a", "--lifecycle"}).what,
            ExportCommand::What::kLifecycle);
  Refusal({"export", "a", "--steps", "--episodes"});
  Refusal({"export", "a", "--out="});
}

TEST(CtlOptions, RefusesWordsThatAreNoUtf8) {
  for (const std::vector<absl::string_view>& words :
       {std::vector<absl::string_view>{"watch", "a\xff"},
        {"submit", "--name=a\xff", "--", "true"},
        {"submit", "--", "python", "a\xff"},
        {"export", "run", "--out", "a\xff"},
        {"a\xff"}}) {
    const std::string refusal = Refusal(words);
    EXPECT_TRUE(absl::StrContains(refusal, "the byte 0xff at offset "))
        << refusal;
    EXPECT_TRUE(absl::StrContains(refusal, "a\\xff'")) << refusal;
  }
  EXPECT_EQ(Parsed<WatchCommand>({"watch", "caf\u00e9"}).run_id, "caf\u00e9");
}

TEST(CtlOptions, EveryCommandHasItsHelp) {
  for (const absl::string_view command :
       {"submit", "list", "watch", "cancel", "pause", "resume", "delete",
        "logs", "export", "health"}) {
    EXPECT_TRUE(absl::StartsWith(Parsed<HelpCommand>({command, "--help"}).text,
                                 absl::StrCat("Usage: tandemctl ", command)));
    EXPECT_TRUE(absl::StrContains(Parsed<HelpCommand>({"--help"}).text,
                                  absl::StrCat("\n  ", command)));
  }
}

TEST(CtlOptions, RefusesWhatIsNoCommand) {
  Refusal({});
  EXPECT_TRUE(absl::StrContains(Refusal({"run"}), "'run'"));
  EXPECT_TRUE(absl::StrContains(Refusal({"--verbose", "list"}), "--verbose"));
  Refusal({"--daemon"});
}

}  // namespace
}  // namespace tandem::slow_lane
