#include "slow_lane/ctl/runs_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "slow_lane/ctl/text_table.h"
#include "slow_lane/runs/run_state.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {
namespace {

using google::protobuf::Timestamp;
using gymgui::trainer::RunEpisode;
using nlohmann::json;

constexpr size_t kNameCharacters = 28;
constexpr size_t kRemarkCharacters = 160;
constexpr size_t kTableBar = 10;
constexpr size_t kPageBar = 40;

absl::Time TimeOf(const Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) +
         absl::Nanoseconds(timestamp.nanos());
}

double SecsBetween(const Timestamp& from, absl::Time to) {
  return absl::ToDoubleSeconds(to - TimeOf(from));
}

std::string IsoTime(const Timestamp& timestamp) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", TimeOf(timestamp),
                          absl::UTCTimeZone());
}

std::string ReturnText(double value) { return absl::StrFormat("%.6g", value); }

// The first line of a reason; where that only announces what follows, the last
// line with it, which is what says most in a traceback.
std::string ReasonOf(absl::string_view reason) {
  std::vector<absl::string_view> lines =
      absl::StrSplit(reason, '\n', absl::SkipWhitespace());
  if (lines.empty()) return "";
  if (lines.size() == 1 || !absl::EndsWith(lines.front(), ":")) {
    return std::string(lines.front());
  }
  return absl::StrCat(lines.front(), " ",
                      absl::StripAsciiWhitespace(lines.back()));
}

std::optional<double> ShareOf(const v1::RunDescription& run) {
  if (!run.has_max_steps() || run.max_steps() == 0) return std::nullopt;
  // Printed are more than kept where they are sampled; a worker that speaks
  // gRPC prints none.
  return static_cast<double>(std::max(run.steps_printed(), run.steps())) /
         static_cast<double>(run.max_steps());
}

std::string ProgressText(const v1::RunDescription& run, size_t width) {
  const std::optional<double> share = ShareOf(run);
  if (!share.has_value()) return "";
  return absl::StrFormat("%s %3.0f %%", BarText(*share, width),
                         100 * std::min(*share, 1.0));
}

std::string StepsText(const v1::RunDescription& run) {
  if (run.steps_printed() <= run.steps()) return CountText(run.steps());
  return absl::StrCat(CountText(run.steps()), " kept of ",
                      CountText(run.steps_printed()), " printed");
}

}  // namespace

double AgeSecs(const v1::RunDescription& run, absl::Time now) {
  const auto& record = run.record();
  return SecsBetween(record.created_at(), IsFinal(record.status())
                                              ? TimeOf(record.updated_at())
                                              : now);
}

std::string RemarkOn(const v1::RunDescription& run, absl::Time now) {
  std::vector<std::string> remarks;
  if (run.record().has_failure_reason()) {
    remarks.push_back(ReasonOf(run.record().failure_reason()));
  }
  if (!run.waiting_for().empty()) {
    remarks.push_back(absl::StrCat("waits for ", run.waiting_for()));
  }
  if (run.unreachable()) {
    remarks.push_back(
        run.record().has_last_heartbeat()
            ? absl::StrCat(
                  "unreachable, no beat for ",
                  AgeText(SecsBetween(run.record().last_heartbeat(), now)))
            : "unreachable, no beat yet");
  }
  if (!run.output_problem().empty()) remarks.push_back(run.output_problem());
  if (run.proxy_starts() > 1) {
    remarks.push_back(
        absl::StrCat("proxy started ", run.proxy_starts(), " times"));
  }
  return OneLine(absl::StrJoin(remarks, "; "), kRemarkCharacters);
}

std::string RunsTable(const std::vector<v1::RunDescription>& runs,
                      absl::Time now) {
  TextTable table({"RUN", "NAME", "STATE", ">TIME", ">STEPS", ">STEPS/S",
                   ">EPISODES", ">RETURN", ">BAD", "PROGRESS", "REMARK"});
  for (const v1::RunDescription& run : runs) {
    table.Add(
        {Printable(run.record().run_id()),
         OneLine(run.run_name(), kNameCharacters),
         std::string(NameOf(run.record().status())), AgeText(AgeSecs(run, now)),
         CountText(run.steps()),
         IsFinal(run.record().status()) ? "" : RateText(run.steps_per_second()),
         CountText(run.episodes()),
         run.has_last_return() ? ReturnText(run.last_return()) : "",
         run.malformed() == 0 ? "" : CountText(run.malformed()),
         ProgressText(run, kTableBar), RemarkOn(run, now)});
  }
  return table.ToText();
}

std::string RunsSummary(const std::vector<v1::RunDescription>& runs) {
  std::map<int, size_t> states;
  double rate = 0;
  for (const v1::RunDescription& run : runs) {
    ++states[run.record().status()];
    rate += run.steps_per_second();
  }
  std::vector<std::string> parts;
  for (const auto& [state, count] : states) {
    parts.push_back(
        absl::StrCat(count, " ", NameOf(static_cast<RunState>(state))));
  }
  return absl::StrCat(
      CountText(runs.size()), runs.size() == 1 ? " run" : " runs",
      parts.empty() ? "" : ": ", absl::StrJoin(parts, ", "),
      rate > 0 ? absl::StrCat("; ", RateText(rate), " steps/s") : "");
}

std::string RunLine(const v1::RunDescription& run, absl::Time now) {
  std::string line = absl::StrCat(Printable(run.record().run_id()), " ",
                                  NameOf(run.record().status()), " after ",
                                  AgeText(AgeSecs(run, now)), ", ",
                                  CountText(run.steps()), " steps");
  if (!IsFinal(run.record().status())) {
    absl::StrAppend(&line, " (", RateText(run.steps_per_second()), "/s)");
  }
  if (const std::optional<double> share = ShareOf(run); share.has_value()) {
    absl::StrAppend(&line, " of ", CountText(run.max_steps()));
  }
  absl::StrAppend(&line, ", ", CountText(run.episodes()), " episodes");
  if (run.has_last_return()) {
    absl::StrAppend(&line, ", last return ", ReturnText(run.last_return()));
  }
  if (run.malformed() > 0) {
    absl::StrAppend(&line, ", ", CountText(run.malformed()), " bad lines");
  }
  if (const std::string remark = RemarkOn(run, now); !remark.empty()) {
    absl::StrAppend(&line, "; ", remark);
  }
  return absl::StrCat(line, "\n");
}

std::string RunPage(const v1::RunDescription& run,
                    const std::vector<RunEpisode>& episodes, absl::Time now) {
  std::string page;
  const auto line = [&page](absl::string_view title, absl::string_view text) {
    if (text.empty()) return;
    absl::StrAppendFormat(&page, "%-10s %s\n", title, text);
  };
  const auto& record = run.record();
  line("run", Printable(record.run_id()));
  line("name", OneLine(run.run_name(), 120));
  const bool ended = IsFinal(record.status());
  line("state", absl::StrCat(NameOf(record.status()), ended ? " after " : ", ",
                             AgeText(AgeSecs(run, now)),
                             ended ? "" : " since it was submitted"));
  line("progress", ProgressText(run, kPageBar));
  line("steps",
       absl::StrCat(
           StepsText(run),
           ended ? ""
                 : absl::StrCat(", ", RateText(run.steps_per_second()), "/s")));
  line("episodes",
       absl::StrCat(
           CountText(run.episodes()),
           run.has_last_return()
               ? absl::StrCat(", last return ", ReturnText(run.last_return()))
               : ""));
  if (run.malformed() > 0) {
    line("bad lines",
         absl::StrCat(CountText(run.malformed()), "; tandemctl logs ",
                      Printable(record.run_id()), " --malformed"));
  }
  if (record.gpu_slots_size() > 0) {
    line("GPUs", absl::StrJoin(record.gpu_slots(), ", "));
  }
  if (!ended && run.worker_pid() != 0) {
    line("worker", absl::StrCat("pid ", run.worker_pid()));
  }
  line("folder", OneLine(run.folder(), 4096));
  line("remark", RemarkOn(run, now));
  if (episodes.empty()) return page;
  TextTable table({">EPISODE", ">RETURN", ">STEPS", "END", ">AGO", "AGENT"});
  for (const RunEpisode& episode : episodes) {
    table.Add({CountText(episode.episode_index()),
               ReturnText(episode.total_reward()), CountText(episode.steps()),
               episode.terminated() ? "terminated"
                                    : (episode.truncated() ? "truncated" : "-"),
               episode.has_timestamp()
                   ? AgeText(SecsBetween(episode.timestamp(), now))
                   : "",
               OneLine(episode.agent_id(), kNameCharacters)});
  }
  return absl::StrCat(page, "\n", table.ToText());
}

std::string RunsJson(const v1::DescribeRunsResponse& response) {
  json runs = json::array();
  for (const v1::RunDescription& run : response.runs()) {
    const auto& record = run.record();
    json object = {{"run_id", record.run_id()},
                   {"name", run.run_name()},
                   {"state", std::string(NameOf(record.status()))},
                   {"created_at", IsoTime(record.created_at())},
                   {"updated_at", IsoTime(record.updated_at())},
                   {"folder", run.folder()},
                   {"steps", run.steps()},
                   {"steps_printed", run.steps_printed()},
                   {"steps_per_second", run.steps_per_second()},
                   {"episodes", run.episodes()},
                   {"lifecycle", run.lifecycle()},
                   {"malformed", run.malformed()},
                   {"text_lines", run.text_lines()},
                   {"bytes_read", run.bytes_read()},
                   {"unreachable", run.unreachable()},
                   {"proxy_starts", run.proxy_starts()},
                   {"worker_pid", run.worker_pid()},
                   {"waiting_for", run.waiting_for()},
                   {"output_problem", run.output_problem()},
                   {"gpu_slots", std::vector<int>(record.gpu_slots().begin(),
                                                  record.gpu_slots().end())}};
    object["failure_reason"] = record.has_failure_reason()
                                   ? json(record.failure_reason())
                                   : json(nullptr);
    object["last_return"] =
        run.has_last_return() ? json(run.last_return()) : json(nullptr);
    object["max_steps"] =
        run.has_max_steps() ? json(run.max_steps()) : json(nullptr);
    runs.push_back(std::move(object));
  }
  const json all = {{"daemon_state", response.daemon_state()},
                    {"queued_bytes", response.queued_bytes()},
                    {"oldest_queued_secs", response.oldest_queued_secs()},
                    {"watchers", response.watchers()},
                    {"runs", std::move(runs)}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tandem::slow_lane
