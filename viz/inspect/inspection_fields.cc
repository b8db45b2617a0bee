// The fields of an inspection. A row of a table has the field's key in JSON,
// its meaning, and its line of the text; docs and --keys print the table.
// Length: one table, with the texts of its rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "schema/layout/phase_word.h"
#include "transport/run_snapshot.h"
#include "viz/core/quantities.h"
#include "viz/inspect/field_table.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {
namespace {

using namespace field_table;  // the words of a table
using At = InspectionAt;
using Region = RegionReport;

// Texts: a line without its title, several such lines, or a block of lines with
// their newlines; "": nothing to show.

// Of a PeerReport or WorkerReport.
template <typename Side>
std::string PeerText(const Side& side) {
  if (side.life == Life::kAbsent) return "none";
  std::string text = NameOf(side.life);
  if (side.life == Life::kUnknown) absl::StrAppend(&text, " (holds no lock)");
  if (side.pid != 0) absl::StrAppend(&text, ", pid ", side.pid);
  if (side.phase == Phase::kAbsent) return text;
  const std::string age = DurationText(side.phase_secs * 1e9);
  return side.life == Life::kDead
             ? absl::StrCat(text, ", last ", NameOf(side.phase), ", begun ",
                            age, " ago")
             : absl::StrCat(text, ", ", NameOf(side.phase), " for ", age);
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

std::string QuantilesText(const StepTimesSnapshot& times) {
  if (times.count() == 0) return "no steps yet";
  return absl::StrCat(DurationText(times.Quantile(0.5)), ", ",
                      DurationText(times.Quantile(0.99)));
}

std::string FileText(const Region& region, const At&) {
  return region.has_header ? "" : BytesText(region.file_bytes);
}

std::string TaskText(const Region& region, const At&) {
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

std::string BirthText(const Region& region, const At& at) {
  const absl::Time born = BirthOf(region);
  return absl::StrFormat(
      "%s, born %s, %s ago; %s", BytesText(region.file_bytes),
      absl::FormatTime("%Y-%m-%d %H:%M:%S %z", born, at.zone),
      AgeText(std::max(absl::ToDoubleSeconds(at.now - born), 0.0)),
      absl::StrJoin(FeatureNames(region.feature_bits), ", "));
}

std::string EngineText(const Region& region, const At&) {
  std::string text = PeerText(region.engine);
  if (region.engine.core && region.engine.sleepers > 0 &&
      region.engine.life == Life::kAlive) {
    absl::StrAppend(&text,
                    region.workers.empty() ? "; sleeps" : "; worker 0 sleeps",
                    " on the client's core ", *region.engine.core);
  }
  return text;
}

// A header-only client is visible only by the number of exchanges, which grows.
std::string ClientText(const Region& region, const At& at) {
  const bool steps = at.inspection.rates.has_value() &&
                     at.inspection.rates->exchanges_per_sec > 0;
  return steps && region.client.life == Life::kAbsent
             ? "unknown (holds no lock), but steps"
             : PeerText(region.client);
}

// "CUDA IPC, 12.0 KiB on GPU-...: obs, images; observations also in the region"
std::string GpuText(const Region& region, const At&) {
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

std::string ExchangesText(const Region& region, const At&) {
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

std::string SpeedText(const Region& region, const At& at) {
  if (!at.inspection.rates) return "";
  const RegionRates& rates = *at.inspection.rates;
  const double steps = rates.exchanges_per_sec * region.num_envs;
  return absl::StrFormat(
      "%s exchanges/s, %s environment steps/s, engine busy %.0f %%",
      RoundedText(rates.exchanges_per_sec), RoundedText(steps),
      100 * rates.busy_share);
}

std::string TimesBlock(const Region& region, const At& at) {
  const std::optional<RegionRates>& rates = at.inspection.rates;
  if (region.step_times.count() + region.round_trips.count() == 0) return "\n";
  std::string text =
      absl::StrFormat("\n%-18s %11s %9s %9s %9s %9s %11s\n", "", "exchanges",
                      "mean", "p50", "p90", "p99", "slowest");
  const std::string last =
      rates ? absl::StrFormat("  last %.1f s", rates->secs) : "";
  AppendTimes("engine's steps", region.step_times, &text);
  if (rates) AppendTimes(last, rates->step_times, &text);
  AppendTimes("round trips", region.round_trips, &text);
  if (rates) AppendTimes(last, rates->round_trips, &text);
  const std::string bars = BarsOf(region.step_times);
  if (!bars.empty()) absl::StrAppend(&text, "\nengine's steps\n", bars);
  return text + "\n";
}

std::string AttendantsText(const Region& region, const At&) {
  return absl::StrJoin(region.attendants, ", ",
                       [](std::string* out, const AttendantReport& each) {
                         absl::StrAppend(out, "'", each.label, "' (pid ",
                                         each.pid, ")");
                       });
}

std::string RingsText(const Region& region, const At&) {
  return absl::StrCat("to the client ", RingText(region.to_client),
                      "\nto the engine ", RingText(region.to_engine));
}

std::string ServicesText(const Region& region, const At&) {
  if (!region.commands) return "";
  return absl::StrCat(NamesText(region.commands->on), " on; ",
                      NamesText(region.commands->off), " off");
}

std::string DroppedText(const Region& region, const At&) {
  if (!region.commands || region.commands->dropped_messages == 0) return "";
  return absl::StrCat(CountText(region.commands->dropped_messages),
                      " invalid messages");
}

std::string FramesText(const FrameRingReport& ring,
                       const Inspection& inspection) {
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

std::string ImagesText(const Region& region, const At&) {
  if (!region.images) return "";
  const ImagesReport& images = *region.images;
  return absl::StrFormat("%dx%dx%d each, of exchange %s", images.width,
                         images.height, images.channels,
                         CountText(images.step));
}

std::string DoorbellsText(const Region& region, const At&) {
  return absl::StrFormat(
      "engine's %s notifications, %d asleep; client's %s, %d asleep",
      CountText(region.engine.bell_rings), region.engine.sleepers,
      CountText(region.client.bell_rings), region.client.sleepers);
}

std::string LastErrorText(const Region& region, const At&) {
  return region.status == ErrorCode::kOk
             ? "none"
             : absl::StrCat(NameOf(region.status), ": ", region.error_text);
}

// A line for each of `parts`, up to a number that fits a window.
template <typename T, typename Line>
std::string Clipped(const char* title, const std::vector<T>& parts,
                    const Line& line) {
  constexpr size_t kMostLines = 20;
  if (parts.empty()) return "";
  std::string text = absl::StrCat("\n", title, "\n");
  const size_t lines = std::min(parts.size(), kMostLines);
  for (size_t i = 0; i < lines; ++i) {
    absl::StrAppend(&text, "  ", line(parts[i], i), "\n");
  }
  if (lines < parts.size()) {
    absl::StrAppend(&text, "  and ", parts.size() - lines,
                    " more; --json prints all\n");
  }
  return text;
}

std::string WorkersBlock(const Region& region, const At& at) {
  const auto line = [&at](const WorkerReport& worker, size_t i) {
    const std::optional<double> share = BusyShareOf(at.inspection, i);
    return absl::StrFormat("%4d %s", i, WorkerText(worker)) +
           (share ? absl::StrFormat(", busy %.0f %%", 100 * *share) : "");
  };
  return Clipped("workers", region.workers, line);
}

std::string FieldsBlock(const Region& region, const At&) {
  const auto line = [](const FieldReport& field, size_t) {
    return absl::StrFormat("%-14s %-24s %-8s [%s], %s at %d", field.role,
                           absl::StrCat("'", field.path, "'"), field.dtype,
                           absl::StrJoin(field.shape, ", "),
                           BytesText(field.bytes), field.offset);
  };
  return Clipped("fields", region.fields, line);
}

// The offset of each section, if there is a problem.
std::string SectionsBlock(const Region& region, const At&) {
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

std::string WriterText(const SegmentReport& segment, const At&) {
  return absl::StrCat(NameOf(segment.writer),
                      segment.writer == Life::kUnknown
                          ? " (of another program, holds no lock), "
                          : ", ",
                      BytesText(segment.file_bytes));
}

// NaN: unknown.
std::string NumberText(double value) {
  return std::isnan(value) ? "-" : absl::StrFormat("%g", value);
}

std::string MetricsText(const SegmentReport& segment, const At&) {
  const FrameMetrics& metrics = segment.ring.metrics;
  return absl::StrFormat("last reward %s, rolling return %s, %g steps/s",
                         NumberText(metrics.last_reward),
                         NumberText(metrics.rolling_return),
                         metrics.step_rate_hz);
}

std::string OwnRunText(const Region& region, const At&) {
  if (!region.own_run) return "";
  const RunSnapshot& run = *region.own_run;
  return absl::StrFormat(
      "the client's own: last %s, rolling return %s, %s episodes%s",
      NumberText(run.last_reward), NumberText(run.rolling_return),
      CountText(run.episodes),
      run.episodes == 0
          ? ""
          : absl::StrCat(" of ", NumberText(run.episode_length), " steps"));
}

struct Bucket {
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  uint64_t count = 0;
};

std::vector<Bucket> BucketsOf(const StepTimesSnapshot& times) {
  std::vector<Bucket> buckets;
  for (uint32_t bucket = 0; bucket < StepTimes::kBuckets; ++bucket) {
    if (times.counts[bucket] == 0) continue;
    buckets.push_back({StepTimeBucketStart(bucket),
                       StepTimeBucketStart(bucket + 1), times.counts[bucket]});
  }
  return buckets;
}

constexpr Field<Bucket> kBucket[] = {
    Of<&Bucket::from_ns>("from_ns", ""),
    Of<&Bucket::to_ns>("to_ns", ""),
    Of<&Bucket::count>("count", "the histogram, without empty buckets"),
};

using Times = StepTimesSnapshot;
constexpr Field<Times> kTimes[] = {
    {"count", "", [](const Times& of) { return Json(of.count()); }},
    {"mean_ns", "", [](const Times& of) { return Json(of.Mean()); }},
    {"p50_ns", "", [](const Times& of) { return Json(of.Quantile(0.5)); }},
    {"p90_ns", "", [](const Times& of) { return Json(of.Quantile(0.9)); }},
    {"p99_ns",
     "the engine's work on its exchanges; quantiles are exact to 25 %. "
     "`round_trips.*` has the same keys: from a client's send to its results",
     [](const Times& of) { return Json(of.Quantile(0.99)); }},
    {"slowest_below_ns",
     "the end of the slowest one's bucket; the last bucket ends at 8.6 s and "
     "includes longer times",
     [](const Times& of) { return Json(of.SlowestEnd()); }},
    {"buckets[]", nullptr,
     [](const Times& of) { return ObjectOf<kBucket>(BucketsOf(of)); },
     KeysOf<kBucket>},
};

using Peer = PeerReport;
constexpr Field<Peer> kPeer[] = {
    Of<&Peer::life>(
        "life",
        "\"alive\" (its lock is held), \"dead\", \"absent\", \"unknown\" "
        "(holds no lock). `client.*` has the same keys as `engine.*`"),
    {"pid", "",
     [](const Peer& of) { return of.pid == 0 ? Json() : Json(of.pid); }},
    Of<&Peer::phase>("phase", ""),
    Of<&Peer::phase_secs>("phase_seconds",
                          "pid, for display; current phase, and its duration"),
    Of<&Peer::bell_rings>("bell_rings", ""),
    Of<&Peer::sleepers>(
        "sleepers",
        "number of wake-ups, modulo 2^32; number of its sleeping threads"),
    Of<&Peer::core>("core",
                    "client: the core on which it waits for results; engine: "
                    "the core on which it sleeps between two requests, since "
                    "it is the client's; null: none, or unknown"),
};

constexpr Field<RegionReport> kLastError[] = {
    {"code", "",
     [](const RegionReport& of) {
       return Json(static_cast<uint32_t>(of.status));
     }},
    {"name", "",
     [](const RegionReport& of) {
       return Json(std::string(NameOf(of.status)));
     }},
    Of<&RegionReport::error_text>(
        "text", "of the last exchange; `last_error` is null if it succeeded"),
};

constexpr Field<RegionRates> kRates[] = {
    Of<&RegionRates::secs>("seconds",
                           "time between the two snapshots of the rates; "
                           "`rates` is null without two. `rates.step_times.*` "
                           "and `rates.round_trips.*` are for that time"),
    Of<&RegionRates::exchanges_per_sec>("exchanges_per_second", ""),
    Of<&RegionRates::busy_share>("busy_share", ""),
    Of<&RegionRates::frames_per_sec>("frames_per_second",
                                     "`busy_share`: the fraction of the time "
                                     "in which the engine worked on exchanges"),
    SamePart<kTimes, &RegionRates::step_times>("step_times"),
    SamePart<kTimes, &RegionRates::round_trips>("round_trips"),
};

constexpr Field<RunSnapshot> kOwnRun[] = {
    Of<&RunSnapshot::last_reward>("last_reward", ""),
    Of<&RunSnapshot::rolling_return>("rolling_return", ""),
    Of<&RunSnapshot::episodes>("episodes", ""),
    Of<&RunSnapshot::episode_length>(
        "episode_length",
        "statistics of the rewards that the client computes itself, as in its "
        "frames; null if it computes none"),
};

constexpr Field<RingFill> kRing[] = {
    Of<&RingFill::capacity>("capacity", ""),
    Of<&RingFill::used_bytes>("used_bytes", ""),
    Of<&RingFill::messages>("messages", ""),
    Of<&RingFill::problem>("problem",
                           "unread messages of the RPC ring; counted up to "
                           "65,536. `rings.to_engine.*` has the same keys"),
};

constexpr Field<RegionReport> kRings[] = {
    Part<kRing, &RegionReport::to_client>("to_client"),
    SamePart<kRing, &RegionReport::to_engine>("to_engine"),
};

constexpr Field<RpcReport> kCommands[] = {
    Of<&RpcReport::on>("services_on", ""),
    Of<&RpcReport::off>("services_off", ""),
    Of<&RpcReport::dropped_messages>(
        "dropped_messages",
        "services on and off; invalid messages of the client; null if the "
        "engine does not report them"),
};

constexpr Field<AttendantReport> kAttendant[] = {
    Of<&AttendantReport::slot>("slot", ""),
    Of<&AttendantReport::label>("label", ""),
    Of<&AttendantReport::pid>(
        "pid",
        "processes that call the engine's RPCs in addition to its client; "
        "label and pid are for display"),
};

using Ring = FrameRingReport;
constexpr Field<Ring> kFrames[] = {
    Of<&Ring::bytes>("bytes", ""),
    Of<&Ring::geometry, &FrameGeometry::width>("width", ""),
    Of<&Ring::geometry, &FrameGeometry::height>("height", ""),
    Of<&Ring::geometry, &FrameGeometry::channels>("channels", ""),
    Of<&Ring::geometry, &FrameGeometry::capacity>("capacity", ""),
    Of<&Ring::frames>(
        "published",
        "the frame ring, in a region or a segment; null without one"),
    Of<&Ring::invalidated>("writer_left", ""),
    Of<&Ring::watched>("watched", ""),
    Of<&Ring::problem>("problem",
                       "`watched`: a reader holds the readers' lock"),
    Of<&Ring::metrics, &FrameMetrics::last_reward>("last_reward", ""),
    Of<&Ring::metrics, &FrameMetrics::rolling_return>("rolling_return", ""),
    Of<&Ring::metrics, &FrameMetrics::step_rate_hz>(
        "step_rate_hz", "values of its writer; null: unknown"),
};

constexpr Field<ImagesReport> kImages[] = {
    Of<&ImagesReport::width>("width", ""),
    Of<&ImagesReport::height>("height", ""),
    Of<&ImagesReport::channels>("channels", ""),
    Of<&ImagesReport::step>("frame_seq",
                            "observation images; null without them"),
};

constexpr Field<FieldReport> kField[] = {
    Of<&FieldReport::role>("role", ""),
    Of<&FieldReport::path>("path", ""),
    Of<&FieldReport::dtype>("dtype", ""),
    Of<&FieldReport::shape>("shape", ""),
    Of<&FieldReport::offset>("offset", ""),
    Of<&FieldReport::bytes>(
        "bytes",
        "the [fields](protocol/fields.md#fields) of the region's table: role "
        "such as \"obs\", path such as \"/image\", NumPy's dtype, and the "
        "shape with `num_envs`; `fields` is empty without a valid table"),
};

constexpr Field<GpuReport> kGpu[] = {
    Of<&GpuReport::path>("path", nullptr),
    Of<&GpuReport::device>("device", nullptr),
    Of<&GpuReport::bytes>("bytes", nullptr),
    Of<&GpuReport::fills_cpu>("fills_cpu", nullptr),
    SamePart<kField, &GpuReport::arrays>("arrays"),
};

// A worker's report, with what others say about it.
struct WorkerAt {
  size_t index = 0;
  WorkerReport worker;
  std::optional<uint32_t> env;
  std::optional<double> busy_share;
};

std::vector<WorkerAt> WorkersOf(const Inspection& inspection) {
  std::vector<WorkerAt> workers;
  for (const WorkerReport& worker : inspection.region.workers) {
    WorkerAt& at = workers.emplace_back();
    at.index = workers.size() - 1;
    at.worker = worker;
    if (worker.env < inspection.region.num_envs) at.env = worker.env;
    at.busy_share = BusyShareOf(inspection, at.index);
  }
  return workers;
}

using Worker = WorkerReport;
constexpr Field<WorkerAt> kWorker[] = {
    Of<&WorkerAt::index>("index", ""),
    Of<&WorkerAt::worker, &Worker::life>("life", ""),
    {"pid", "",
     [](const WorkerAt& of) {
       return of.worker.pid == 0 ? Json(nullptr) : Json(of.worker.pid);
     }},
    Of<&WorkerAt::worker, &Worker::phase>("phase", ""),
    Of<&WorkerAt::worker, &Worker::phase_secs>(
        "phase_seconds",
        "the processes that simulate the environments; `life` as "
        "`engine.life`, \"absent\": not started yet, or ended; `workers` is "
        "empty if the engine simulates them itself"),
    Of<&WorkerAt::worker, &Worker::first_env>("first_env", ""),
    Of<&WorkerAt::worker, &Worker::num_envs>("num_envs", ""),
    Of<&WorkerAt::env>("env", ""),
    Of<&WorkerAt::worker, &Worker::done>(
        "done",
        "a worker's environments; the one in work; whether it has completed "
        "the last exchange that was sent"),
    Of<&WorkerAt::worker, &Worker::steps>("steps", ""),
    Of<&WorkerAt::worker, &Worker::busy_ns>("busy_ns", ""),
    Of<&WorkerAt::busy_share>("busy_share",
                              "steps of its environments; time in steps and "
                              "resets; `busy_share` as `rates.busy_share`"),
};

constexpr Field<RegionSection> kSection[] = {
    Of<&RegionSection::name>("name", ""),
    Of<&RegionSection::offset>("offset", ""),
    Of<&RegionSection::bytes>("bytes", ""),
    Of<&RegionSection::problem>("problem",
                                "name and position of each section; `problem` "
                                "is \"\" if there is none"),
};

// Of every inspection, also a failed one.
constexpr Field<Inspection> kHead[] = {
    {"kind", "\"region\", or \"segment\": frames only",
     [](const Inspection& of) {
       return Json(of.is_segment ? "segment" : "region");
     }},
    Of<&Inspection::name>("name",
                          "its file in /dev/shm; unprintable bytes escaped"),
    {"state",
     "\"ok\"; \"look\": something is slow, full or failed; \"broken\": "
     "corrupt, or a side died; \"unreadable\": it does not exist, or this user "
     "may not read it",
     [](const Inspection& of) { return Json(StateOf(of)); }},
    {"problems", "", [](const Inspection& of) { return Json(ProblemsOf(of)); }},
    Of<&Inspection::verdict, &RegionVerdict::remarks>(
        "remarks", "sentences: the reasons of \"broken\"; other observations"),
};

// Of a region too short for a header, too.
constexpr Field<Region> kFile[] = {
    Of<&Region::file_bytes>("bytes", "size of the file", "file", FileText),
    Of<&Region::name_gone>(
        "name_gone",
        "true: its name was removed, and only the spare link exists"),
};

constexpr Field<Region> kRegion[] = {
    Of<&Region::task>("task", "", "task", TaskText),
    {"mode", "",
     [](const Region& of) {
       return NameIn({"training", "inference"}, of.mode);
     }},
    Of<&Region::num_envs>("num_envs", ""),
    Of<&Region::obs_size>("obs_size", ""),
    Of<&Region::act_size>("act_size", ""),
    Of<&Region::info_size>(
        "info_size",
        "the engine's task and sizes; mode \"training\" or \"inference\""),
    Of<&Region::autoreset>("autoreset",
                           "\"SAME_STEP\", \"NEXT_STEP\", \"DISABLED\""),
    Of<&Region::version>("version", "", "region", BirthText),
    {"features", "",
     [](const Region& of) { return Json(FeatureNames(of.feature_bits)); }},
    Of<&Region::generation>("generation", ""),
    {"born",
     "version of the layout; names of its extensions; creation time in "
     "nanoseconds since 1970, and as a date",
     [](const Region& of) {
       return Json(absl::FormatTime(absl::RFC3339_sec, BirthOf(of),
                                    absl::UTCTimeZone()));
     }},
    Part<kPeer, &Region::engine>("engine", "engine", EngineText),
    SamePart<kPeer, &Region::client>("client", nullptr, "client", ClientText),
    SamePart<kGpu, &Region::gpu>(
        "gpu",
        "the engine's arrays on a GPU ([gpu.md](gpu.md)): `path` such as "
        "\"CUDA IPC\", `device`, `bytes`, `fills_cpu`, and `arrays` with the "
        "keys of `fields`; null: the engine writes in the region only",
        "GPU", GpuText),
    Of<&Region::frame_seq>("frame_seq", "", "exchanges", ExchangesText),
    Of<&Region::action_seq>("action_seq", ""),
    {"exchange", "",
     [](const Region& of) {
       return NameIn({"idle", "pending", "impossible"}, of.exchange);
     }},
    {"exchange_kind",
     "results and actions so far; \"idle\", \"pending\" or \"impossible\"; "
     "\"step\" or \"reset_only\"",
     [](const Region& of) {
       return NameIn({"step", "reset_only"}, of.kind);
     }},
    {.title = "speed", .text = SpeedText},
    Part<kTimes, &Region::step_times>("step_times", nullptr, TimesBlock),
    SamePart<kTimes, &Region::round_trips>("round_trips"),
    Of<&Region::early_wakes>("early_wakes", ""),
    Of<&Region::early_hits>(
        "early_hits",
        "how often the engine polled before a request that it forecast; how "
        "often the request came meanwhile"),
    Part<kOwnRun, &Region::own_run>("own_run", "rewards", OwnRunText),
    Part<kAttendant, &Region::attendants>("attendants[]", "attendants",
                                          AttendantsText),
    {"rings", nullptr, [](const Region& of) { return ObjectOf<kRings>(of); },
     KeysOf<kRings>, "rings", RingsText},
    Part<kCommands, &Region::commands>("commands", "services", ServicesText),
    {.title = "dropped", .text = DroppedText},
    Part<kFrames, &Region::frames>(
        "frames", "frames",
        [](const Region& of, const At& at) {
          return of.frames ? FramesText(*of.frames, at.inspection)
                           : std::string();
        }),
    Part<kImages, &Region::images>("images", "images", ImagesText),
    {.title = "doorbells", .text = DoorbellsText},
    {"last_error", nullptr,
     [](const Region& of) {
       return of.status == ErrorCode::kOk ? Json(nullptr)
                                          : ObjectOf<kLastError>(of);
     },
     KeysOf<kLastError>, "last error", LastErrorText},
    {.text = WorkersBlock},
    Part<kField, &Region::fields>("fields[]", nullptr, FieldsBlock),
    Part<kSection, &Region::sections>("sections[]", nullptr, SectionsBlock),
};

// Of a region with a header: what is more than its report.
constexpr Field<Inspection> kMore[] = {
    Part<kRates, &Inspection::rates>("rates"),
    {"workers[]", nullptr,
     [](const Inspection& of) { return ObjectOf<kWorker>(WorkersOf(of)); },
     KeysOf<kWorker>},
};

constexpr Field<SegmentReport> kSegment[] = {
    Of<&SegmentReport::file_bytes>("bytes", nullptr),
    Of<&SegmentReport::writer>("writer", "", "writer", WriterText),
    SamePart<kFrames, &SegmentReport::ring>(
        "frames", nullptr, "frames",
        [](const SegmentReport& of, const At& at) {
          return FramesText(of.ring, at.inspection);
        }),
    {.title = "metrics", .text = MetricsText},
};

constexpr Field<Inspection> kSegmentRate[] = {
    Of<&Inspection::frames_per_sec>(
        "frames_per_second",
        "for a segment: as `engine.life`; frames a second"),
};

// Calls `with` for each table of an inspection, and what it is about.
template <typename With>
void ForTables(const Inspection& of, const With& with) {
  with(std::span(kHead), of);
  if (!of.status.ok()) return;
  if (of.is_segment) {
    with(std::span(kSegment), of.segment);
    with(std::span(kSegmentRate), of);
    return;
  }
  with(std::span(kFile), of.region);
  if (!of.region.has_header) return;
  with(std::span(kRegion), of.region);
  with(std::span(kMore), of);
}

Json JsonObjectOf(const Inspection& inspection) {
  Json json = Json::object();
  ForTables(inspection, [&]<typename T>(auto table, const T& of) {
    AddFields(std::span<const Field<T>>(table), of, &json);
  });
  return json;
}

std::string Dump(const Json& json) {
  // An error text may quote the user's input.
  return json.dump(-1, ' ', /*ensure_ascii=*/true,
                   Json::error_handler_t::replace);
}

struct Line {
  const char* title;  // nullptr: the text is a block
  std::string text;
};

std::vector<Line> LinesOf(const At& at) {
  std::vector<Line> lines;
  ForTables(at.inspection, [&](auto table, const auto& of) {
    for (const auto& field : table) {
      std::string text = field.text == nullptr ? "" : field.text(of, at);
      if (!text.empty()) lines.push_back({field.title, std::move(text)});
    }
  });
  return lines;
}

}  // namespace

const char* StateOf(const Inspection& inspection) {
  if (!inspection.status.ok()) return "unreadable";
  if (!inspection.verdict.problems.empty()) return "broken";
  return inspection.verdict.remarks.empty() ? "ok" : "look";
}

std::string JsonOf(const Inspection& inspection) {
  return Dump(JsonObjectOf(inspection));
}

std::string ListJsonOf(const std::vector<Inspection>& inspections) {
  Json entries = Json::array();
  for (const Inspection& inspection : inspections) {
    entries.push_back(JsonObjectOf(inspection));
  }
  return Dump({{"entries", std::move(entries)}});
}

std::string KeysTable() {
  std::vector<Key> keys;
  for (const std::vector<Key>& more :
       {KeysOf<kHead>(), KeysOf<kFile>(), KeysOf<kRegion>(), KeysOf<kMore>(),
        KeysOf<kSegment>(), KeysOf<kSegmentRate>()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  std::string text = "| key | value |\n|---|---|\n";
  std::vector<std::string> row;
  for (const Key& key : keys) {
    row.push_back(absl::StrCat("`", key.key, "`"));
    if (*key.meaning == '\0') continue;
    absl::StrAppend(&text, "| ", absl::StrJoin(row, ", "), " | ", key.meaning,
                    " |\n");
    row.clear();
  }
  return text;
}

std::string TextOf(const Inspection& inspection, absl::Time now,
                   absl::TimeZone zone) {
  if (!inspection.status.ok()) {
    return absl::StrCat(inspection.status.message(), "\n");
  }
  std::string text = HeadText(inspection);
  for (const Line& line : LinesOf({inspection, now, zone})) {
    if (line.title == nullptr) {
      absl::StrAppend(&text, line.text);
    } else {
      absl::StrAppendFormat(
          &text, "%-10s %s\n", line.title,
          absl::StrReplaceAll(line.text, {{"\n", "\n           "}}));
    }
  }
  return text;
}

std::string PanelJsonOf(const Inspection& inspection) {
  const RegionReport& region = inspection.region;
  Json rows = Json::array({{"state", StateText(inspection)}});
  for (const Line& line :
       LinesOf({inspection, absl::Now(), absl::LocalTimeZone()})) {
    if (line.title != nullptr) rows.push_back({line.title, line.text});
  }
  for (const WorkerAt& at : WorkersOf(inspection)) {
    rows.push_back({absl::StrCat("worker ", at.index), PeerText(at.worker)});
  }
  const bool is_new =
      inspection.rates && inspection.rates->step_times.count() > 0;
  const StepTimesSnapshot& times =
      is_new ? inspection.rates->step_times : region.step_times;
  rows.push_back({"p50, p99", QuantilesText(times)});
  return Dump(
      {{"known", !inspection.is_segment && region.has_header},
       {"rows", std::move(rows)},
       {"times", BarsOf(times, /*width=*/16)},
       {"services_on", region.commands ? Json(region.commands->on) : Json()},
       {"services_off",
        region.commands ? Json(region.commands->off) : Json()}});
}

}  // namespace tandem
