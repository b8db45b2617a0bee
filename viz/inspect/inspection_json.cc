#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/time/time.h"
#include "base/error.h"
#include "transport/session/phase_word.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json TimesJson(const StepTimesSnapshot& times) {
  Json buckets = Json::array();
  for (uint32_t bucket = 0; bucket < StepTimes::kBuckets; ++bucket) {
    if (times.counts[bucket] == 0) continue;
    buckets.push_back({{"from_ns", StepTimeBucketStart(bucket)},
                       {"to_ns", StepTimeBucketStart(bucket + 1)},
                       {"count", times.counts[bucket]}});
  }
  return {{"count", times.count()},
          {"mean_ns", times.Mean()},
          {"p50_ns", times.Quantile(0.5)},
          {"p90_ns", times.Quantile(0.9)},
          {"p99_ns", times.Quantile(0.99)},
          {"slowest_below_ns", times.SlowestEnd()},
          {"buckets", std::move(buckets)}};
}

Json PeerJson(const PeerReport& peer) {
  return {{"life", NameOf(peer.life)},
          {"pid", peer.pid == 0 ? Json(nullptr) : Json(peer.pid)},
          {"phase", NameOf(peer.phase)},
          {"phase_seconds", peer.phase_secs},
          {"bell_rings", peer.bell_rings},
          {"sleepers", peer.sleepers}};
}

Json RingJson(const RingFill& ring) {
  return {{"capacity", ring.capacity},
          {"used_bytes", ring.used_bytes},
          {"messages", OrNull(ring.messages)},
          {"problem", ring.problem}};
}

Json FramesJson(const FrameRingReport& ring) {
  return {{"bytes", ring.bytes},
          {"width", ring.geometry.width},
          {"height", ring.geometry.height},
          {"channels", ring.geometry.channels},
          {"capacity", ring.geometry.capacity},
          {"published", ring.frames},
          {"writer_left", ring.invalidated},
          {"watched", OrNull(ring.watched)},
          {"last_reward", ring.metrics.last_reward},
          {"rolling_return", ring.metrics.rolling_return},
          {"step_rate_hz", ring.metrics.step_rate_hz},
          {"problem", ring.problem}};
}

Json RatesJson(const std::optional<RegionRates>& rates) {
  if (!rates) return nullptr;
  return {{"seconds", rates->secs},
          {"exchanges_per_second", rates->exchanges_per_sec},
          {"busy_share", rates->busy_share},
          {"frames_per_second", rates->frames_per_sec},
          {"step_times", TimesJson(rates->step_times)},
          {"round_trips", TimesJson(rates->round_trips)}};
}

// Returns the enum value's name; null if it has none.
template <typename Enum>
Json NameIn(std::initializer_list<const char*> names, Enum value) {
  const auto at = static_cast<size_t>(value);
  return at < names.size() ? Json(names.begin()[at]) : Json(nullptr);
}

std::string Date(uint64_t generation) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return absl::FormatTime(
      absl::RFC3339_sec,
      absl::FromUnixNanos(static_cast<int64_t>(std::min(generation, kMost))),
      absl::UTCTimeZone());
}

Json FieldJson(const FieldReport& field) {
  return {{"role", field.role},     {"path", field.path},
          {"dtype", field.dtype},   {"shape", field.shape},
          {"offset", field.offset}, {"bytes", field.bytes}};
}

void AddRegion(const Inspection& inspection, Json* json) {
  const RegionReport& region = inspection.region;
  (*json)["bytes"] = region.file_bytes;
  (*json)["name_gone"] = region.name_gone;
  if (!region.has_header) return;
  Json sections = Json::array();
  for (const RegionSection& section : region.sections) {
    sections.push_back({{"name", std::string(section.name)},
                        {"offset", section.offset},
                        {"bytes", section.bytes},
                        {"problem", section.problem}});
  }
  Json fields = Json::array();
  for (const FieldReport& field : region.fields) {
    fields.push_back(FieldJson(field));
  }
  Json gpu = nullptr;
  if (region.gpu) {
    Json arrays = Json::array();
    for (const FieldReport& array : region.gpu->arrays) {
      arrays.push_back(FieldJson(array));
    }
    gpu = {{"path", region.gpu->path},
           {"device", region.gpu->device},
           {"bytes", region.gpu->bytes},
           {"fills_cpu", region.gpu->fills_cpu},
           {"arrays", std::move(arrays)}};
  }
  Json workers = Json::array();
  for (size_t i = 0; i < region.workers.size(); ++i) {
    const WorkerReport& worker = region.workers[i];
    const bool has_share =
        inspection.rates && i < inspection.rates->worker_busy_shares.size();
    workers.push_back(
        {{"index", i},
         {"life", NameOf(worker.life)},
         {"pid", worker.pid == 0 ? Json(nullptr) : Json(worker.pid)},
         {"first_env", worker.first_env},
         {"num_envs", worker.num_envs},
         {"env",
          worker.env < region.num_envs ? Json(worker.env) : Json(nullptr)},
         {"phase", NameOf(worker.phase)},
         {"phase_seconds", worker.phase_secs},
         {"done", worker.done},
         {"steps", worker.steps},
         {"busy_ns", worker.busy_ns},
         {"busy_share", has_share
                            ? Json(inspection.rates->worker_busy_shares[i])
                            : Json(nullptr)}});
  }
  Json attendants = Json::array();
  for (const AttendantReport& each : region.attendants) {
    attendants.push_back(
        {{"slot", each.slot}, {"label", each.label}, {"pid", each.pid}});
  }
  Json error = nullptr;
  if (region.status != ErrorCode::kOk) {
    error = {{"code", static_cast<uint32_t>(region.status)},
             {"name", std::string(NameOf(region.status))},
             {"text", region.error_text}};
  }
  json->update(
      {{"version", region.version},
       {"generation", region.generation},
       {"born", Date(region.generation)},
       {"features", FeatureNames(region.feature_bits)},
       {"task", region.task},
       {"mode", NameIn({"training", "inference"}, region.mode)},
       {"num_envs", region.num_envs},
       {"obs_size", region.obs_size},
       {"act_size", region.act_size},
       {"info_size", region.info_size},
       {"autoreset", NameOf(region.autoreset)},
       {"engine", PeerJson(region.engine)},
       {"client", PeerJson(region.client)},
       {"frame_seq", region.frame_seq},
       {"action_seq", region.action_seq},
       {"exchange", NameIn({"idle", "pending", "impossible"}, region.exchange)},
       {"exchange_kind", NameIn({"step", "reset_only"}, region.kind)},
       {"last_error", std::move(error)},
       {"step_times", TimesJson(region.step_times)},
       {"round_trips", TimesJson(region.round_trips)},
       {"rates", RatesJson(inspection.rates)},
       {"rings",
        {{"to_client", RingJson(region.to_client)},
         {"to_engine", RingJson(region.to_engine)}}},
       {"commands",
        region.commands
            ? Json{{"services_on", region.commands->on},
                   {"services_off", region.commands->off},
                   {"dropped_messages", region.commands->dropped_messages}}
            : Json(nullptr)},
       {"attendants", std::move(attendants)},
       {"frames", region.frames ? FramesJson(*region.frames) : Json(nullptr)},
       {"images", region.images ? Json{{"width", region.images->width},
                                       {"height", region.images->height},
                                       {"channels", region.images->channels},
                                       {"frame_seq", region.images->step}}
                                : Json(nullptr)},
       {"workers", std::move(workers)},
       {"fields", std::move(fields)},
       {"gpu", std::move(gpu)},
       {"sections", std::move(sections)}});
}

Json ObjectOf(const Inspection& inspection) {
  Json json = {{"kind", inspection.is_segment ? "segment" : "region"},
               {"name", inspection.name}};
  if (!inspection.status.ok()) {
    json["state"] = "unreadable";
    json["problems"] = {std::string(inspection.status.message())};
    json["remarks"] = Json::array();
    return json;
  }
  json["state"] = !inspection.verdict.problems.empty()  ? "broken"
                  : !inspection.verdict.remarks.empty() ? "look"
                                                        : "ok";
  json["problems"] = inspection.verdict.problems;
  json["remarks"] = inspection.verdict.remarks;
  if (!inspection.is_segment) {
    AddRegion(inspection, &json);
    return json;
  }
  json["bytes"] = inspection.segment.file_bytes;
  json["writer"] = NameOf(inspection.segment.writer);
  json["frames"] = FramesJson(inspection.segment.ring);
  json["frames_per_second"] = OrNull(inspection.frames_per_sec);
  return json;
}

std::string Dump(const Json& json) {
  // An error text may quote the user's input.
  return json.dump(-1, ' ', /*ensure_ascii=*/true,
                   Json::error_handler_t::replace);
}

}  // namespace

std::string JsonOf(const Inspection& inspection) {
  return Dump(ObjectOf(inspection));
}

std::string ListJsonOf(const std::vector<Inspection>& inspections) {
  Json entries = Json::array();
  for (const Inspection& inspection : inspections)
    entries.push_back(ObjectOf(inspection));
  return Dump({{"entries", std::move(entries)}});
}

}  // namespace tandem
