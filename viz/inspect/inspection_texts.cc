#include "viz/inspect/inspection_texts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "transport/session/phase_word.h"
#include "viz/core/quantities.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {
namespace {

std::string PeerText(Life life, uint32_t pid, Phase phase, double phase_secs) {
  if (life == Life::kAbsent) return "none";
  std::string text = NameOf(life);
  if (life == Life::kUnknown) absl::StrAppend(&text, " (holds no lock)");
  if (pid != 0) absl::StrAppend(&text, ", pid ", pid);
  if (phase == Phase::kAbsent) return text;
  const std::string age = DurationText(phase_secs * 1e9);
  return life == Life::kDead
             ? absl::StrCat(text, ", last ", NameOf(phase), ", begun ", age,
                            " ago")
             : absl::StrCat(text, ", ", NameOf(phase), " for ", age);
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

}  // namespace

const char* StateOf(const Inspection& inspection) {
  if (!inspection.status.ok()) return "unreadable";
  if (!inspection.verdict.problems.empty()) return "broken";
  return inspection.verdict.remarks.empty() ? "ok" : "look";
}

std::vector<std::string> ProblemsOf(const Inspection& inspection) {
  if (inspection.status.ok()) return inspection.verdict.problems;
  return {std::string(inspection.status.message())};
}

std::string StateText(const Inspection& inspection) {
  std::vector<std::string> parts = ProblemsOf(inspection);
  parts.insert(parts.begin(), StateOf(inspection));
  const std::vector<std::string>& remarks = inspection.verdict.remarks;
  parts.insert(parts.end(), remarks.begin(), remarks.end());
  return absl::StrJoin(parts, ". ");
}

std::string HeadText(const Inspection& inspection) {
  std::string text = absl::StrCat(
      inspection.name, ": ", absl::AsciiStrToUpper(StateOf(inspection)), "\n");
  for (const std::string& problem : inspection.verdict.problems) {
    absl::StrAppend(&text, "  WRONG  ", problem, "\n");
  }
  for (const std::string& remark : inspection.verdict.remarks) {
    absl::StrAppend(&text, "  note   ", remark, "\n");
  }
  return text + "\n";
}

absl::Time BirthOf(const RegionReport& region) {
  // Limits invalid times to the range of int64.
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return absl::FromUnixNanos(
      static_cast<int64_t>(std::min(region.generation, kMost)));
}

std::optional<double> BusyShareOf(const Inspection& inspection, size_t worker) {
  if (!inspection.rates ||
      worker >= inspection.rates->worker_busy_shares.size()) {
    return std::nullopt;
  }
  return inspection.rates->worker_busy_shares[worker];
}

std::string PeerText(const PeerReport& peer) {
  return PeerText(peer.life, peer.pid, peer.phase, peer.phase_secs);
}

std::string PeerText(const WorkerReport& worker) {
  return PeerText(worker.life, worker.pid, worker.phase, worker.phase_secs);
}

std::string QuantilesText(const StepTimesSnapshot& times) {
  if (times.count() == 0) return "no steps yet";
  return absl::StrCat(DurationText(times.Quantile(0.5)), ", ",
                      DurationText(times.Quantile(0.99)));
}

std::string FileText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
  return region.has_header ? "" : BytesText(region.file_bytes);
}

std::string TaskText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
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

std::string BirthText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
  const absl::Time born = BirthOf(region);
  return absl::StrFormat(
      "%s, born %s, %s ago; %s", BytesText(region.file_bytes),
      absl::FormatTime("%Y-%m-%d %H:%M:%S %z", born, at.zone),
      AgeText(std::max(absl::ToDoubleSeconds(at.now - born), 0.0)),
      absl::StrJoin(FeatureNames(region.feature_bits), ", "));
}

std::string EngineText(const InspectionAt& at) {
  return PeerText(at.inspection.region.engine);
}

// A header-only client is visible only by the number of exchanges, which grows.
std::string ClientText(const InspectionAt& at) {
  const Inspection& inspection = at.inspection;
  const PeerReport& client = inspection.region.client;
  if (client.life == Life::kAbsent && inspection.rates &&
      inspection.rates->exchanges_per_sec > 0) {
    return "unknown (holds no lock), but steps";
  }
  return PeerText(client);
}

// "CUDA IPC, 12.0 KiB on GPU-...: obs, images; observations also in the region"
std::string GpuText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
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

std::string ExchangesText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
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

std::string SpeedText(const InspectionAt& at) {
  if (!at.inspection.rates) return "";
  const RegionRates& rates = *at.inspection.rates;
  const double steps = rates.exchanges_per_sec * at.inspection.region.num_envs;
  return absl::StrFormat(
      "%s exchanges/s, %s environment steps/s, engine busy %.0f %%",
      RoundedText(rates.exchanges_per_sec), RoundedText(steps),
      100 * rates.busy_share);
}

std::string TimesBlock(const InspectionAt& at) {
  const Inspection& inspection = at.inspection;
  const RegionReport& region = inspection.region;
  if (region.step_times.count() + region.round_trips.count() == 0) return "\n";
  std::string text =
      absl::StrFormat("\n%-18s %11s %9s %9s %9s %9s %11s\n", "", "exchanges",
                      "mean", "p50", "p90", "p99", "slowest");
  const std::string last =
      inspection.rates
          ? absl::StrFormat("  last %.1f s", inspection.rates->secs)
          : "";
  AppendTimes("engine's steps", region.step_times, &text);
  if (inspection.rates) AppendTimes(last, inspection.rates->step_times, &text);
  AppendTimes("round trips", region.round_trips, &text);
  if (inspection.rates) AppendTimes(last, inspection.rates->round_trips, &text);
  const std::string bars = BarsOf(region.step_times);
  if (!bars.empty()) absl::StrAppend(&text, "\nengine's steps\n", bars);
  return text + "\n";
}

std::string AttendantsText(const InspectionAt& at) {
  return absl::StrJoin(at.inspection.region.attendants, ", ",
                       [](std::string* out, const AttendantReport& each) {
                         absl::StrAppend(out, "'", each.label, "' (pid ",
                                         each.pid, ")");
                       });
}

std::string RingsText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
  return absl::StrCat("to the client ", RingText(region.to_client),
                      "\nto the engine ", RingText(region.to_engine));
}

std::string ServicesText(const InspectionAt& at) {
  const std::optional<RpcReport>& commands = at.inspection.region.commands;
  return commands ? absl::StrCat(NamesText(commands->on), " on; ",
                                 NamesText(commands->off), " off")
                  : "";
}

std::string DroppedText(const InspectionAt& at) {
  const std::optional<RpcReport>& commands = at.inspection.region.commands;
  return commands && commands->dropped_messages != 0
             ? absl::StrCat(CountText(commands->dropped_messages),
                            " invalid messages")
             : "";
}

std::string FramesText(const InspectionAt& at) {
  const Inspection& inspection = at.inspection;
  if (!inspection.is_segment && !inspection.region.frames) return "";
  const FrameRingReport& ring = inspection.is_segment
                                    ? inspection.segment.ring
                                    : *inspection.region.frames;
  if (!ring.problem.empty()) return absl::StrCat("invalid: ", ring.problem);
  std::string text = absl::StrFormat(
      "%dx%d %s, %d slots, %s published", ring.geometry.width,
      ring.geometry.height, ring.geometry.channels == 4 ? "RGBA" : "RGB",
      ring.geometry.capacity, CountText(ring.frames));
  const std::optional<double> per_sec = inspection.rates
                                            ? inspection.rates->frames_per_sec
                                            : inspection.frames_per_sec;
  if (per_sec) absl::StrAppendFormat(&text, ", %.1f/s", *per_sec);
  return absl::StrCat(
      text, ring.watched.value_or(false) ? ", watched" : ", not watched");
}

std::string ImagesText(const InspectionAt& at) {
  const std::optional<ImagesReport>& images = at.inspection.region.images;
  return images ? absl::StrFormat("%dx%dx%d each, of exchange %s",
                                  images->width, images->height,
                                  images->channels, CountText(images->step))
                : "";
}

std::string DoorbellsText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
  return absl::StrFormat(
      "engine's %s notifications, %d asleep; client's %s, %d asleep",
      CountText(region.engine.bell_rings), region.engine.sleepers,
      CountText(region.client.bell_rings), region.client.sleepers);
}

std::string LastErrorText(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
  return region.status == ErrorCode::kOk
             ? "none"
             : absl::StrCat(NameOf(region.status), ": ", region.error_text);
}

// A line for each worker, up to a number that fits a window.
std::string WorkersBlock(const InspectionAt& at) {
  constexpr size_t kMostLines = 20;
  const std::vector<WorkerReport>& workers = at.inspection.region.workers;
  if (workers.empty()) return "";
  std::string text = "\nworkers\n";
  const size_t lines = std::min(workers.size(), kMostLines);
  for (size_t i = 0; i < lines; ++i) {
    absl::StrAppendFormat(&text, "  %4d %s", i, WorkerText(workers[i]));
    if (const std::optional<double> share = BusyShareOf(at.inspection, i)) {
      absl::StrAppendFormat(&text, ", busy %.0f %%", 100 * *share);
    }
    absl::StrAppend(&text, "\n");
  }
  if (lines < workers.size()) {
    absl::StrAppend(&text, "  and ", workers.size() - lines,
                    " more; --json prints all\n");
  }
  return text;
}

// A line for each field, up to a number that fits a window.
std::string FieldsBlock(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
  constexpr size_t kMostLines = 20;
  if (region.fields.empty()) return "";
  std::string text = "\nfields\n";
  const size_t lines = std::min(region.fields.size(), kMostLines);
  for (const FieldReport& field : std::span(region.fields).first(lines)) {
    absl::StrAppendFormat(&text, "  %-14s %-24s %-8s [%s], %s at %d\n",
                          field.role, absl::StrCat("'", field.path, "'"),
                          field.dtype, absl::StrJoin(field.shape, ", "),
                          BytesText(field.bytes), field.offset);
  }
  if (lines < region.fields.size()) {
    absl::StrAppend(&text, "  and ", region.fields.size() - lines,
                    " more; --json prints all\n");
  }
  return text;
}

// The offset of each section, if there is a problem.
std::string SectionsBlock(const InspectionAt& at) {
  const RegionReport& region = at.inspection.region;
  if (std::all_of(region.sections.begin(), region.sections.end(),
                  [](const RegionSection& s) { return s.problem.empty(); })) {
    return "";
  }
  std::string text = "\nsections\n";
  for (const RegionSection& section : region.sections) {
    absl::StrAppendFormat(&text, "  %-12s at %12d, %12d bytes%s\n",
                          section.name, section.offset, section.bytes,
                          section.problem.empty() ? "" : "   WRONG");
  }
  return text;
}

std::string WriterText(const InspectionAt& at) {
  const SegmentReport& segment = at.inspection.segment;
  return absl::StrCat(NameOf(segment.writer),
                      segment.writer == Life::kUnknown
                          ? " (of another program, holds no lock), "
                          : ", ",
                      BytesText(segment.file_bytes));
}

std::string MetricsText(const InspectionAt& at) {
  const FrameMetrics& metrics = at.inspection.segment.ring.metrics;
  return absl::StrFormat("last reward %g, rolling return %g, %g steps/s",
                         metrics.last_reward, metrics.rolling_return,
                         metrics.step_rate_hz);
}

}  // namespace tandem
