// An inspection of a region that has every part, for tests.
//
//   const Inspection inspection = SampleInspection();

#pragma once

#include "schema/layout/error_codes.h"
#include "viz/inspect/inspection.h"

namespace tandem {

inline Inspection SampleInspection() {
  Inspection inspection;
  inspection.name = "demo";
  inspection.verdict.remarks = {"a remark"};
  RegionReport& region = inspection.region;
  region.has_header = true;
  region.file_bytes = 328'832;
  region.version = 1;
  region.num_envs = 64;
  region.obs_size = 17;
  region.act_size = 6;
  region.info_size = 3;
  region.task = "HalfCheetah-v5";
  region.feature_bits = kFeaturesOfVersion1 | kFeatureFrames;
  region.generation = 1'700'000'000'123'456'789;
  region.engine = {.life = Life::kAlive,
                   .pid = 40001,
                   .phase = Phase::kStepping,
                   .phase_secs = 0.000'25,
                   .bell_rings = 12'345,
                   .sleepers = 1};
  region.client = {.life = Life::kAlive,
                   .pid = 40002,
                   .phase = Phase::kWaiting,
                   .phase_secs = 0.000'3};
  region.frame_seq = 12'345;
  region.action_seq = 12'346;
  region.exchange = ExchangeState::kPending;
  region.status = ErrorCode::kEngineFailed;
  region.error_text = "joint 3 exploded";
  region.step_times.total_ns = 500'000'000;
  region.step_times.counts[StepTimeBucket(400'000)] = 900;
  region.step_times.counts[StepTimeBucket(900'000)] = 100;
  region.round_trips = region.step_times;
  region.own_run = {.last_reward = 0.5,
                    .rolling_return = -3.25,
                    .episodes = 1'017,
                    .episode_length = 200.5};
  region.to_client = {.capacity = 524'288, .messages = 0};
  region.to_engine = {.capacity = 524'288, .used_bytes = 48, .messages = 2};
  region.frames = FrameRingReport();
  region.frames->bytes = 100'000;
  region.frames->geometry = {.width = 320, .height = 240, .capacity = 8};
  region.frames->frames = 77;
  region.frames->watched = true;
  region.images = {.width = 84, .height = 84, .channels = 3, .step = 12'344};
  region.commands = {
      .on = {"agent", "scene"}, .off = {"camera"}, .dropped_messages = 3};
  region.attendants = {{1, "panel", 40003}};
  region.fields = {{.role = "obs",
                    .path = "",
                    .dtype = "float32",
                    .shape = {64, 17},
                    .offset = 4096,
                    .bytes = 4352},
                   {.role = "status",
                    .path = "",
                    .dtype = "uint8",
                    .shape = {64},
                    .offset = 9984,
                    .bytes = 64}};
  region.workers = {{.life = Life::kAlive,
                     .pid = 40011,
                     .first_env = 0,
                     .num_envs = 32,
                     .env = 7,
                     .phase = Phase::kStepping,
                     .phase_secs = 0.000'25,
                     .steps = 395'040,
                     .busy_ns = 9'000'000'000},
                    {.life = Life::kDead,
                     .pid = 40012,
                     .first_env = 32,
                     .num_envs = 32,
                     .phase = Phase::kIdle,
                     .phase_secs = 2.5,
                     .done = true,
                     .steps = 395'072,
                     .busy_ns = 8'000'000'000}};
  region.sections = {{"obs", 4096, 4352}, {"actions", 8448, 1536}};
  inspection.rates = RegionRates();
  inspection.rates->secs = 0.5;
  inspection.rates->exchanges_per_sec = 1480;
  inspection.rates->busy_share = 0.82;
  inspection.rates->frames_per_sec = 30;
  inspection.rates->worker_busy_shares = {0.91, 0.78};
  inspection.rates->step_times.counts[60] = 740;
  inspection.rates->round_trips.counts[61] = 740;
  return inspection;
}

}  // namespace tandem
