#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "transport/session/phase_word.h"
#include "viz/core/quantities.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {
namespace {

std::string StateOf(const RegionVerdict& verdict) {
  if (!verdict.problems.empty()) return "BROKEN";
  return verdict.remarks.empty() ? "OK" : "LOOK";
}

// Returns name, state and problems.
std::string HeadOf(const Inspection& inspection) {
  std::string text =
      absl::StrCat(inspection.name, ": ", StateOf(inspection.verdict), "\n");
  for (const std::string& problem : inspection.verdict.problems) {
    absl::StrAppend(&text, "  WRONG  ", problem, "\n");
  }
  for (const std::string& remark : inspection.verdict.remarks) {
    absl::StrAppend(&text, "  note   ", remark, "\n");
  }
  return text + "\n";
}

void AppendRow(absl::string_view name, absl::string_view value,
               std::string* text) {
  absl::StrAppendFormat(text, "%-10s %s\n", name, value);
}

std::string PeerText(const PeerReport& peer) {
  if (peer.life == Life::kAbsent) return "none";
  std::string text = NameOf(peer.life);
  if (peer.life == Life::kUnknown) {
    absl::StrAppend(&text, " (holds no lock)");
  }
  if (peer.pid != 0) absl::StrAppend(&text, ", pid ", peer.pid);
  if (peer.phase == Phase::kAbsent) return text;
  const std::string age = DurationText(peer.phase_secs * 1e9);
  return peer.life == Life::kDead
             ? absl::StrCat(text, ", last ", NameOf(peer.phase), ", begun ",
                            age, " ago")
             : absl::StrCat(text, ", ", NameOf(peer.phase), " for ", age);
}

// A header-only client is visible only by the number of exchanges, which grows.
std::string ClientText(const Inspection& inspection) {
  const PeerReport& client = inspection.region.client;
  if (client.life == Life::kAbsent && inspection.rates &&
      inspection.rates->exchanges_per_sec > 0) {
    return "unknown (holds no lock), but steps";
  }
  return PeerText(client);
}

std::string ExchangesText(const RegionReport& region) {
  std::string text = absl::StrCat(CountText(region.frame_seq), " done");
  switch (region.exchange) {
    case ExchangeState::kIdle:
      return text;
    case ExchangeState::kPending:
      return absl::StrCat(
          text, ", one pending",
          region.kind == ExchangeKind::kResetOnly ? " (resets only)" : "");
    case ExchangeState::kImpossible:
      break;
  }
  return absl::StrCat(text, "; action_seq ", region.action_seq,
                      " does not fit");
}

std::string SpeedText(const Inspection& inspection) {
  const RegionRates& rates = *inspection.rates;
  const double steps = rates.exchanges_per_sec * inspection.region.num_envs;
  return absl::StrFormat(
      "%s exchanges/s, %s environment steps/s, engine busy %.0f %%",
      RoundedText(rates.exchanges_per_sec), RoundedText(steps),
      100 * rates.busy_share);
}

void AppendTimes(absl::string_view name, const StepTimesSnapshot& times,
                 std::string* text) {
  if (times.count() == 0) return;
  // The last bucket has no upper bound.
  const uint64_t end = times.SlowestEnd();
  const std::string slowest =
      times.counts[StepTimes::kBuckets - 1] != 0
          ? "8 s or more"
          : absl::StrCat("< ", DurationText(static_cast<double>(end)));
  absl::StrAppendFormat(text, "%-18s %11s %9s %9s %9s %9s %11s\n", name,
                        CountText(times.count()), DurationText(times.Mean()),
                        DurationText(times.Quantile(0.5)),
                        DurationText(times.Quantile(0.9)),
                        DurationText(times.Quantile(0.99)), slowest);
}

void AppendTimesTable(const Inspection& inspection, std::string* text) {
  const RegionReport& region = inspection.region;
  if (region.step_times.count() + region.round_trips.count() == 0) return;
  absl::StrAppendFormat(text, "\n%-18s %11s %9s %9s %9s %9s %11s\n", "",
                        "exchanges", "mean", "p50", "p90", "p99", "slowest");
  const std::string last =
      inspection.rates
          ? absl::StrFormat("  last %.1f s", inspection.rates->secs)
          : "";
  AppendTimes("engine's steps", region.step_times, text);
  if (inspection.rates) AppendTimes(last, inspection.rates->step_times, text);
  AppendTimes("round trips", region.round_trips, text);
  if (inspection.rates) AppendTimes(last, inspection.rates->round_trips, text);
  const std::string bars = BarsOf(region.step_times);
  if (!bars.empty()) absl::StrAppend(text, "\nengine's steps\n", bars);
}

std::string RingText(const RingFill& ring) {
  std::string text = absl::StrFormat("%s of %s", BytesText(ring.used_bytes),
                                     BytesText(ring.capacity));
  if (!ring.messages.has_value()) {
    return absl::StrCat(text,
                        ring.problem.empty() ? ", changing" : ", invalid");
  }
  if (*ring.messages == 0) return text;
  const bool more = *ring.messages == RingFill::kMostCounted;
  return absl::StrFormat("%s (%.0f %%), %s%s message%s", text,
                         100.0 * ring.used_bytes / ring.capacity,
                         more ? "at least " : "", CountText(*ring.messages),
                         *ring.messages == 1 ? "" : "s");
}

std::string FramesText(const FrameRingReport& ring,
                       std::optional<double> frames_per_sec) {
  if (!ring.problem.empty()) return absl::StrCat("invalid: ", ring.problem);
  std::string text = absl::StrFormat(
      "%dx%d %s, %d slots, %s published", ring.geometry.width,
      ring.geometry.height, ring.geometry.channels == 4 ? "RGBA" : "RGB",
      ring.geometry.capacity, CountText(ring.frames));
  if (frames_per_sec) {
    absl::StrAppendFormat(&text, ", %.1f/s", *frames_per_sec);
  }
  return absl::StrCat(
      text, ring.watched.value_or(false) ? ", watched" : ", not watched");
}

// Appends a line for each field, up to a number that fits a window.
void AppendFields(const RegionReport& region, std::string* text) {
  constexpr size_t kMostLines = 20;
  if (region.fields.empty()) return;
  absl::StrAppend(text, "\nfields\n");
  const size_t lines = std::min(region.fields.size(), kMostLines);
  for (const FieldReport& field : std::span(region.fields).first(lines)) {
    absl::StrAppendFormat(text, "  %-14s %-24s %-8s [%s], %s at %d\n",
                          field.role, absl::StrCat("'", field.path, "'"),
                          field.dtype, absl::StrJoin(field.shape, ", "),
                          BytesText(field.bytes), field.offset);
  }
  if (lines < region.fields.size()) {
    absl::StrAppend(text, "  and ", region.fields.size() - lines,
                    " more; --json prints all\n");
  }
}

std::string WorkerText(const WorkerReport& worker) {
  std::string text = absl::StrFormat(
      "%-7s pid %-8d env %5d .. %-5d %9s for %-7s %12s steps",
      NameOf(worker.life), worker.pid, worker.first_env,
      int64_t{worker.first_env} + worker.num_envs - 1, NameOf(worker.phase),
      DurationText(worker.phase_secs * 1e9), CountText(worker.steps));
  // Between two environments it has none.
  if (IsWork(worker.phase) && worker.env - worker.first_env < worker.num_envs) {
    absl::StrAppend(&text, ", in env ", worker.env);
  }
  return text;
}

// Appends a line for each worker, up to a number that fits a window.
void AppendWorkers(const Inspection& inspection, std::string* text) {
  constexpr size_t kMostLines = 20;
  const std::vector<WorkerReport>& workers = inspection.region.workers;
  if (workers.empty()) return;
  absl::StrAppend(text, "\nworkers\n");
  const size_t lines = std::min(workers.size(), kMostLines);
  for (size_t i = 0; i < lines; ++i) {
    absl::StrAppendFormat(text, "  %4d %s", i, WorkerText(workers[i]));
    if (inspection.rates && i < inspection.rates->worker_busy_shares.size()) {
      absl::StrAppendFormat(text, ", busy %.0f %%",
                            100 * inspection.rates->worker_busy_shares[i]);
    }
    absl::StrAppend(text, "\n");
  }
  if (lines < workers.size()) {
    absl::StrAppend(text, "  and ", workers.size() - lines,
                    " more; --json prints all\n");
  }
}

// Appends the offset of each section, if there is a problem.
void AppendSections(const RegionReport& region, std::string* text) {
  if (std::all_of(region.sections.begin(), region.sections.end(),
                  [](const RegionSection& s) { return s.problem.empty(); })) {
    return;
  }
  absl::StrAppend(text, "\nsections\n");
  for (const RegionSection& section : region.sections) {
    absl::StrAppendFormat(text, "  %-12s at %12d, %12d bytes%s\n", section.name,
                          section.offset, section.bytes,
                          section.problem.empty() ? "" : "   WRONG");
  }
}

std::string BirthText(const RegionReport& region, absl::Time now,
                      absl::TimeZone zone) {
  // Limits invalid times to the range of int64.
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const absl::Time born = absl::FromUnixNanos(
      static_cast<int64_t>(std::min(region.generation, kMost)));
  return absl::StrFormat(
      "%s, born %s, %s ago; %s", BytesText(region.file_bytes),
      absl::FormatTime("%Y-%m-%d %H:%M:%S %z", born, zone),
      AgeText(std::max(absl::ToDoubleSeconds(now - born), 0.0)),
      absl::StrJoin(FeatureNames(region.feature_bits), ", "));
}

std::string NamesText(const std::vector<std::string>& names) {
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

// Returns "17 observed and 6 acted values". Without rows it counts the fields:
// "3 observed fields and 6 acted values".
std::string SizesText(const RegionReport& region) {
  const auto fields = [&region](absl::string_view role) {
    return std::ranges::count(region.fields, role, &FieldReport::role);
  };
  const bool obs_fields = region.obs_size == 0 && fields("obs") > 0;
  const bool act_fields = region.act_size == 0 && fields("action") > 0;
  const auto noun = [&fields](bool is_fields, absl::string_view role) {
    if (!is_fields) return "values";
    return fields(role) == 1 ? "field" : "fields";
  };
  const bool shared = obs_fields == act_fields;
  return absl::StrCat(
      obs_fields ? absl::StrCat(fields("obs")) : CountText(region.obs_size),
      " observed ", shared ? "" : absl::StrCat(noun(obs_fields, "obs"), " "),
      "and ",
      act_fields ? absl::StrCat(fields("action")) : CountText(region.act_size),
      " acted ", shared && act_fields ? "fields" : noun(act_fields, "action"));
}

std::string TaskText(const RegionReport& region) {
  std::string text =
      absl::StrFormat("%s, %s environment%s of %s",
                      region.task.empty() ? "(no name)" : region.task,
                      CountText(region.num_envs),
                      region.num_envs == 1 ? "" : "s", SizesText(region));
  if (region.info_size != 0) {
    absl::StrAppend(&text, ", ", region.info_size, " infos");
  }
  absl::StrAppend(&text, "; autoreset ", NameOf(region.autoreset));
  if (region.mode == RegionMode::kInference) {
    absl::StrAppend(&text, "; in real time");
  }
  return text;
}

// "CUDA IPC, 12.0 KiB on GPU-...: obs, images; observations also in the region"
std::string GpuText(const RegionReport& region) {
  if (!region.gpu) return "no path: the engine writes in the region only";
  std::vector<std::string> names;
  for (const FieldReport& array : region.gpu->arrays) {
    names.push_back(absl::StrCat(array.role, array.path));
  }
  return absl::StrCat(
      region.gpu->path, ", ", BytesText(region.gpu->bytes), " on ",
      region.gpu->device, ": ", absl::StrJoin(names, ", "), "; observations ",
      region.gpu->fills_cpu ? "also in" : "not in", " the region");
}

std::string RegionText(const Inspection& inspection, absl::Time now,
                       absl::TimeZone zone) {
  const RegionReport& region = inspection.region;
  std::string text = HeadOf(inspection);
  const auto row = [&](absl::string_view name, absl::string_view value) {
    AppendRow(name, value, &text);
  };
  if (!region.has_header) {
    row("file", BytesText(region.file_bytes));
    return text;
  }
  row("task", TaskText(region));
  row("region", BirthText(region, now, zone));
  row("engine", PeerText(region.engine));
  row("client", ClientText(inspection));
  row("GPU", GpuText(region));
  row("exchanges", ExchangesText(region));
  if (inspection.rates) row("speed", SpeedText(inspection));
  AppendTimesTable(inspection, &text);
  absl::StrAppend(&text, "\n");
  if (!region.attendants.empty()) {
    row("attendants",
        absl::StrJoin(region.attendants, ", ",
                      [](std::string* out, const AttendantReport& each) {
                        absl::StrAppend(out, "'", each.label, "' (pid ",
                                        each.pid, ")");
                      }));
  }
  row("rings", absl::StrCat("to the client ", RingText(region.to_client)));
  row("", absl::StrCat("to the engine ", RingText(region.to_engine)));
  if (region.commands) {
    const RpcReport& commands = *region.commands;
    row("services", absl::StrCat(NamesText(commands.on), " on; ",
                                 NamesText(commands.off), " off"));
    if (commands.dropped_messages != 0) {
      row("dropped", absl::StrCat(CountText(commands.dropped_messages),
                                  " invalid messages"));
    }
  }
  if (region.frames) {
    row("frames",
        FramesText(*region.frames,
                   inspection.rates
                       ? std::optional(inspection.rates->frames_per_sec)
                       : std::nullopt));
  }
  if (region.images) {
    row("images",
        absl::StrFormat("%dx%dx%d each, of exchange %s", region.images->width,
                        region.images->height, region.images->channels,
                        CountText(region.images->step)));
  }
  row("doorbells",
      absl::StrFormat(
          "engine's %s notifications, %d asleep; client's %s, %d "
          "asleep",
          CountText(region.engine.bell_rings), region.engine.sleepers,
          CountText(region.client.bell_rings), region.client.sleepers));
  row("last error",
      region.status == ErrorCode::kOk
          ? "none"
          : absl::StrCat(NameOf(region.status), ": ", region.error_text));
  AppendWorkers(inspection, &text);
  AppendFields(region, &text);
  AppendSections(region, &text);
  return text;
}

std::string SegmentText(const Inspection& inspection) {
  const SegmentReport& segment = inspection.segment;
  std::string text = HeadOf(inspection);
  AppendRow("writer",
            absl::StrCat(NameOf(segment.writer),
                         segment.writer == Life::kUnknown
                             ? " (of another program, holds no lock), "
                             : ", ",
                         BytesText(segment.file_bytes)),
            &text);
  AppendRow("frames", FramesText(segment.ring, inspection.frames_per_sec),
            &text);
  AppendRow("metrics",
            absl::StrFormat("last reward %g, rolling return %g, %g steps/s",
                            segment.ring.metrics.last_reward,
                            segment.ring.metrics.rolling_return,
                            segment.ring.metrics.step_rate_hz),
            &text);
  return text;
}

struct ListRow {
  std::string state;
  std::string name;
  std::string what;
  std::string does;
};

ListRow SegmentRow(const Inspection& inspection) {
  const FrameRingReport& ring = inspection.segment.ring;
  return {
      StateOf(inspection.verdict), inspection.name,
      absl::StrFormat("frames, %dx%d", ring.geometry.width,
                      ring.geometry.height),
      absl::StrFormat("writer %s, %s published, %.1f/s",
                      NameOf(inspection.segment.writer), CountText(ring.frames),
                      inspection.frames_per_sec.value_or(0))};
}

ListRow RegionRow(const Inspection& inspection) {
  const RegionReport& region = inspection.region;
  const bool has_client = region.client.life != Life::kAbsent;
  const double rate =
      inspection.rates ? inspection.rates->exchanges_per_sec : 0;
  return {
      StateOf(inspection.verdict), inspection.name,
      region.has_header
          ? absl::StrFormat("%s x %s", region.task, CountText(region.num_envs))
          : "region",
      absl::StrFormat(
          "engine %s, client %s, %s exchanges/s", NameOf(region.engine.phase),
          has_client ? NameOf(region.client.life) : "none", RoundedText(rate))};
}

ListRow RowOf(const Inspection& inspection) {
  if (!inspection.status.ok()) {
    return {"?", inspection.name, inspection.is_segment ? "frames" : "region",
            std::string(inspection.status.message())};
  }
  ListRow row =
      inspection.is_segment ? SegmentRow(inspection) : RegionRow(inspection);
  if (!inspection.verdict.problems.empty()) {
    row.does = inspection.verdict.problems.front();
  } else if (!inspection.verdict.remarks.empty()) {
    row.does = inspection.verdict.remarks.front();
  }
  return row;
}

}  // namespace

std::string TextOf(const Inspection& inspection, absl::Time now,
                   absl::TimeZone zone) {
  if (!inspection.status.ok()) {
    return absl::StrCat(inspection.status.message(), "\n");
  }
  return inspection.is_segment ? SegmentText(inspection)
                               : RegionText(inspection, now, zone);
}

std::string ListTextOf(const std::vector<Inspection>& inspections) {
  if (inspections.empty()) {
    return "no region and no segment of frames is in shared memory\n";
  }
  std::vector<ListRow> rows = {{"", "NAME", "what", "does"}};
  for (const Inspection& inspection : inspections)
    rows.push_back(RowOf(inspection));
  constexpr size_t kWidest = 40;  // longer names shift the rest of the line
  size_t name_width = 0;
  size_t what_width = 0;
  for (const ListRow& row : rows) {
    name_width = std::max(name_width, std::min(row.name.size(), kWidest));
    what_width = std::max(what_width, std::min(row.what.size(), kWidest));
  }
  std::string text;
  for (const ListRow& row : rows) {
    absl::StrAppendFormat(&text, "%-6s %-*s %-*s %s\n", row.state,
                          static_cast<int>(name_width), row.name,
                          static_cast<int>(what_width), row.what, row.does);
  }
  return text;
}

std::string BarsOf(const StepTimesSnapshot& times) {
  constexpr uint32_t kMostBars = 14;
  constexpr uint32_t kWidth = 50;
  uint32_t first = 0;
  while (first < StepTimes::kBuckets && times.counts[first] == 0) ++first;
  if (first == StepTimes::kBuckets) return "";
  uint32_t last = StepTimes::kBuckets - 1;
  while (times.counts[last] == 0) --last;
  // Bars of 1/4, 1/2, 1 and 2 octaves.
  uint32_t group = 1;
  while (last / group - first / group >= kMostBars) group *= 2;

  std::vector<uint64_t> bars;
  for (uint32_t at = first / group; at <= last / group; ++at) {
    uint64_t sum = 0;
    for (uint32_t bucket = at * group;
         bucket < std::min((at + 1) * group, StepTimes::kBuckets); ++bucket) {
      sum += times.counts[bucket];
    }
    bars.push_back(sum);
  }
  const double longest =
      static_cast<double>(*std::max_element(bars.begin(), bars.end()));
  std::string text;
  for (size_t i = 0; i < bars.size(); ++i) {
    const uint32_t bucket = (first / group + static_cast<uint32_t>(i)) * group;
    // A bucket that is not empty is always visible.
    const double share =
        longest > 0 ? static_cast<double>(bars[i]) / longest : 0;
    const auto width = static_cast<uint32_t>(std::ceil(share * kWidth));
    absl::StrAppendFormat(
        &text, "  %8s |%-*s %s\n",
        DurationText(static_cast<double>(StepTimeBucketStart(bucket))), kWidth,
        std::string(width, '#'), bars[i] == 0 ? "" : CountText(bars[i]));
  }
  return text;
}

}  // namespace tandem
