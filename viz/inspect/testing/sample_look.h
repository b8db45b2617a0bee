// A look at a region in which every part is there, for tests.
//
//   const Look look = SampleLook();

#ifndef TANDEM_VIZ_INSPECT_TESTING_SAMPLE_LOOK_H_
#define TANDEM_VIZ_INSPECT_TESTING_SAMPLE_LOOK_H_

#include "schema/layout/error_codes.h"
#include "viz/inspect/look.h"

namespace tandem {

inline Look SampleLook() {
  Look look;
  look.name = "demo";
  look.verdict.remarks = {"a remark"};
  RegionReport& region = look.region;
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
  region.sections = {{"obs", 4096, 4352}, {"actions", 8448, 1536}};
  look.rates = RegionRates();
  look.rates->secs = 0.5;
  look.rates->exchanges_per_sec = 1480;
  look.rates->busy_share = 0.82;
  look.rates->frames_per_sec = 30;
  look.rates->step_times.counts[60] = 740;
  look.rates->round_trips.counts[61] = 740;
  return look;
}

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_TESTING_SAMPLE_LOOK_H_
