#include "slow_lane/ctl/events_csv.h"

#include "absl/time/time.h"
#include "slow_lane/ctl/csv.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RunEpisode;
using gymgui::trainer::RunStep;
using What = ExportCommand::What;

constexpr char kStepColumns[] =
    "seq_id,worker_id,episode_index,step_index,reward,terminated,truncated,"
    "timestamp,agent_id,action_json,observation_json,policy_label,backend,"
    "episode_seed,frame_ref,render_hint_json,render_payload_json,"
    "payload_version\n";
constexpr char kEpisodeColumns[] =
    "seq_id,worker_id,episode_index,total_reward,steps,terminated,truncated,"
    "timestamp,agent_id,metadata_json\n";
constexpr char kLifecycleColumns[] =
    "seq_id,worker_id,event,timestamp,payload_json\n";

template <typename Event>
std::string TimeOf(const Event& event) {
  if (!event.has_timestamp()) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ",
                          absl::FromUnixSeconds(event.timestamp().seconds()) +
                              absl::Nanoseconds(event.timestamp().nanos()),
                          absl::UTCTimeZone());
}

void AppendStep(const RunStep& step, std::string* csv) {
  CsvRow(csv)
      .Count(step.seq_id())
      .Text(step.worker_id())
      .Count(step.episode_index())
      .Count(step.step_index())
      .Number(step.reward())
      .Flag(step.terminated())
      .Flag(step.truncated())
      .Text(TimeOf(step))
      .Text(step.agent_id())
      .Text(step.action_json())
      .Text(step.observation_json())
      .Text(step.policy_label())
      .Text(step.backend())
      .Count(step.episode_seed())
      .Text(step.frame_ref())
      .Text(step.render_hint_json())
      .Text(step.render_payload_json())
      .Count(step.payload_version())
      .Finish();
}

void AppendEpisode(const RunEpisode& episode, std::string* csv) {
  CsvRow(csv)
      .Count(episode.seq_id())
      .Text(episode.worker_id())
      .Count(episode.episode_index())
      .Number(episode.total_reward())
      .Count(episode.steps())
      .Flag(episode.terminated())
      .Flag(episode.truncated())
      .Text(TimeOf(episode))
      .Text(episode.agent_id())
      .Text(episode.metadata_json())
      .Finish();
}

void AppendLifecycle(const v1::LifecycleEvent& event, std::string* csv) {
  CsvRow(csv)
      .Count(event.seq_id())
      .Text(event.worker_id())
      .Text(event.event())
      .Text(TimeOf(event))
      .Text(event.payload_json())
      .Finish();
}

}  // namespace

std::string CsvHeader(What what) {
  switch (what) {
    case What::kSteps:
      return kStepColumns;
    case What::kEpisodes:
      return kEpisodeColumns;
    case What::kLifecycle:
      return kLifecycleColumns;
  }
  return "";
}

void AppendCsv(const v1::EventBatch& batch, What what, std::string* csv) {
  switch (what) {
    case What::kSteps:
      for (const RunStep& step : batch.steps()) AppendStep(step, csv);
      return;
    case What::kEpisodes:
      for (const RunEpisode& each : batch.episodes()) AppendEpisode(each, csv);
      return;
    case What::kLifecycle:
      for (const auto& event : batch.lifecycle()) AppendLifecycle(event, csv);
      return;
  }
}

}  // namespace tandem::slow_lane
