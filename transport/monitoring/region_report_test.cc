// Length: a fixture for each kind of region.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/goldens/testing/samples.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/field.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/placed_file.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/report.h"
#include "transport/run_snapshot.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

RegionReport ReadOrFail(const std::string& name) {
  absl::StatusOr<RegionReport> report = ReadRegionReport(name);
  EXPECT_TRUE(report.ok()) << report.status();
  return *std::move(report);
}

// Reads once the engine has recorded `exchanges` exchanges. The engine records
// one after the client continues.
RegionReport ReadAfter(const std::string& name, uint64_t exchanges) {
  RegionReport report;
  AwaitTrue([&] {
    report = ReadOrFail(name);
    return report.step_times.count() == exchanges;
  });
  return report;
}

absl::string_view BytesOf(const LrbcHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

// A header of schema/goldens, in which every field has a different value, and a
// frame ring at its offset: an invalid ring would delay each report.
class GoldenRegionTest : public testing::Test {
 protected:
  explicit GoldenRegionTest(const LrbcHeader& golden = SampleHeader())
      : golden_(golden) {
    placed_.Resize(golden_.region_size);
    const absl::StatusOr<FlanHeader> ring =
        PlanFrameRing({.width = 8, .height = 6, .channels = 3, .capacity = 4});
    Place(golden_.flan_offset, *ring);
  }
  template <typename T>
  void Place(uint64_t offset, const T& record) {
    placed_.Write(offset,
                  {reinterpret_cast<const char*>(&record), sizeof(record)});
  }
  void PlaceTable(uint64_t offset, const std::vector<FieldRecord>& records) {
    placed_.Write(offset, {reinterpret_cast<const char*>(records.data()),
                           records.size() * sizeof(FieldRecord)});
  }

  const LrbcHeader golden_;
  const std::string name_ = UniqueRegionName("report");
  PlacedFile placed_{name_, BytesOf(golden_), PlacedFile::kAlive};
};

TEST_F(GoldenRegionTest, EveryFieldEqualsTheListing) {
  const RegionReport report = ReadOrFail(name_);
  EXPECT_EQ(report.name, name_);
  EXPECT_FALSE(report.name_gone);
  EXPECT_TRUE(report.has_header);
  EXPECT_EQ(report.header_problems, std::vector<std::string>());
  EXPECT_EQ(report.file_bytes, 382'336u);
  EXPECT_EQ(report.version, 1u);
  EXPECT_EQ(report.mode, RegionMode::kInference);
  EXPECT_EQ(report.num_envs, 33u);
  EXPECT_EQ(report.obs_size, 17u);
  EXPECT_EQ(report.act_size, 6u);
  EXPECT_EQ(report.info_size, 2u);
  EXPECT_EQ(report.task, "HalfCheetah-v5");
  EXPECT_EQ(report.generation, 1'700'000'000'123'456'789u);
  EXPECT_EQ(report.frame_seq, 72'623'859'790'382'855u);
  EXPECT_EQ(report.action_seq, 72'623'859'790'382'856u);
  EXPECT_EQ(report.exchange, ExchangeState::kPending);
  EXPECT_EQ(report.kind, ExchangeKind::kResetOnly);
  EXPECT_EQ(report.autoreset, AutoresetMode::kDisabled);
  EXPECT_EQ(report.status, ErrorCode::kEngineFailed);
  EXPECT_EQ(report.error_text, "environment 2: the state is not finite");
  EXPECT_EQ(report.engine.pid, 40001u);
  EXPECT_EQ(report.engine.phase, Phase::kStepping);
  EXPECT_EQ(report.engine.bell_rings, 70001u);
  EXPECT_EQ(report.engine.sleepers, 8u);
  EXPECT_EQ(report.client.pid, 40002u);
  EXPECT_EQ(report.client.phase, Phase::kWaiting);
  EXPECT_EQ(report.client.bell_rings, 70002u);
  EXPECT_EQ(report.client.sleepers, 9u);
  EXPECT_EQ(report.step_times.total_ns, 123'456'789u);
  EXPECT_EQ(report.step_times.counts[103], 2104u);
  EXPECT_EQ(report.round_trips.total_ns, 223'456'789u);
  EXPECT_EQ(report.round_trips.counts[0], 3001u);
  EXPECT_EQ(report.to_client.capacity, 65'536u);
  ASSERT_TRUE(report.images.has_value());
  EXPECT_EQ(report.images->width, 48u);
  EXPECT_EQ(report.images->height, 36u);
  EXPECT_EQ(report.images->channels, 3u);
  EXPECT_EQ(report.images->step, 72'623'859'790'382'854u);
  ASSERT_TRUE(report.frames.has_value());
  EXPECT_EQ(report.frames->bytes, 14'000u);
  EXPECT_EQ(report.frames->problem, "");
}

// The golden header in which the client has written statistics of its own.
class OwnRunReport : public GoldenRegionTest {
 protected:
  OwnRunReport() : GoldenRegionTest(SampleOwnRunHeader()) {}
};

TEST_F(OwnRunReport, HasTheClientsOwnStatistics) {
  EXPECT_EQ(ReadOrFail(name_).own_run,
            std::optional(RunSnapshot{.last_reward = 2.5,
                                      .rolling_return = -40.25,
                                      .episodes = 2011,
                                      .episode_length = 200.5}));
}

TEST_F(OwnRunReport, HasNoneDuringAWriteOrWithoutThem) {
  placed_.WriteWord(offsetof(LrbcHeader, own_seq), uint64_t{2011});
  EXPECT_EQ(ReadOrFail(name_).own_run, std::nullopt);
  placed_.WriteWord(offsetof(LrbcHeader, own_seq), uint64_t{2012});
  placed_.WriteWord(offsetof(LrbcHeader, own_present), uint64_t{0});
  EXPECT_EQ(ReadOrFail(name_).own_run, std::nullopt);
}

TEST_F(GoldenRegionTest, SectionsAreInOrderOfTheirOffsets) {
  const RegionReport report = ReadOrFail(name_);
  ASSERT_EQ(report.sections.size(), 14u);
  EXPECT_EQ(report.sections.front().name, "obs");
  EXPECT_EQ(report.sections.front().offset, 4096u);
  EXPECT_EQ(report.sections.front().bytes, 33u * 17 * 4);
  for (size_t i = 1; i < report.sections.size(); ++i) {
    EXPECT_LE(report.sections[i - 1].offset + report.sections[i - 1].bytes,
              report.sections[i].offset);
  }
}

TEST_F(GoldenRegionTest, EachSectionReportsItsProblem) {
  placed_.WriteWord(offsetof(LrbcHeader, rewards_offset), golden_.act_offset);
  placed_.WriteWord(offsetof(LrbcHeader, dones_offset), ~uint64_t{0});
  const RegionReport report = ReadOrFail(name_);
  EXPECT_GE(report.header_problems.size(), 3u);  // Includes the checksum.
  int wrong = 0;
  for (const RegionSection& section : report.sections) {
    const bool expected = section.name == "dones" ||
                          section.name == "actions" ||
                          section.name == "rewards";
    if (!section.problem.empty()) {
      ++wrong;
      EXPECT_TRUE(expected) << section.problem;
    }
  }
  EXPECT_EQ(wrong, 2);  // One of the two that overlap, and dones.
}

TEST_F(GoldenRegionTest, LocksShowWhichSideIsAlive) {
  EXPECT_EQ(ReadOrFail(name_).engine.life, Life::kAlive);
  EXPECT_EQ(ReadOrFail(name_).client.life, Life::kDead);
  placed_.Lock(kClientLockByte);
  EXPECT_EQ(ReadOrFail(name_).client.life, Life::kAlive);
  placed_.Unlock(kClientLockByte);
  placed_.WriteWord(offsetof(LrbcHeader, client_phase),
                    PackPhase(Phase::kStopped, 1));
  EXPECT_EQ(ReadOrFail(name_).client.life, Life::kAbsent);
}

TEST(RegionReport, EngineWithoutItsLockIsDeadOrUnknown) {
  LrbcHeader header = SampleHeader();
  const std::string name = UniqueRegionName("report");
  PlacedFile placed(name, BytesOf(header), PlacedFile::kDead);
  EXPECT_EQ(ReadOrFail(name).engine.life, Life::kDead);
  placed.WriteWord(offsetof(LrbcHeader, feature_bits), uint64_t{0});
  EXPECT_EQ(ReadOrFail(name).engine.life, Life::kUnknown);
}

TEST_F(GoldenRegionTest, HeaderOnlyClientIsUnknownAndNoClientIsAbsent) {
  placed_.WriteWord(offsetof(LrbcHeader, client_phase),
                    PackPhase(Phase::kAbsent, 1));
  EXPECT_EQ(ReadOrFail(name_).client.life, Life::kUnknown);  // By its pid.
  placed_.WriteWord(offsetof(LrbcHeader, client_pid), uint32_t{0});
  EXPECT_EQ(ReadOrFail(name_).client.life, Life::kUnknown);  // By exchange.
  placed_.WriteWord(offsetof(LrbcHeader, action_seq),
                    uint64_t{72'623'859'790'382'855u});
  EXPECT_EQ(ReadOrFail(name_).client.life, Life::kAbsent);
}

TEST_F(GoldenRegionTest, PhasesHaveTheirDuration) {
  placed_.WriteWord(
      offsetof(LrbcHeader, engine_phase),
      PackPhase(Phase::kStepping, MonotonicNanos() - 5'000'000'000));
  placed_.WriteWord(
      offsetof(LrbcHeader, client_phase),
      PackPhase(static_cast<Phase>(15), MonotonicNanos() + 5'000'000'000));
  const RegionReport report = ReadOrFail(name_);
  EXPECT_GE(report.engine.phase_secs, 5);
  EXPECT_LT(report.engine.phase_secs, 1000);
  EXPECT_EQ(report.client.phase_secs, 0);
  EXPECT_STREQ(NameOf(report.client.phase), "garbled");
}

TEST_F(GoldenRegionTest, TextsAreEscaped) {
  placed_.Write(offsetof(LrbcHeader, task), std::string(64, '\x1b'));
  placed_.Write(offsetof(LrbcHeader, error_text), std::string(240, '\xff'));
  const RegionReport report = ReadOrFail(name_);
  EXPECT_EQ(report.task.substr(0, 8), "\\x1b\\x1b");
  EXPECT_EQ(report.error_text.size(), 240u * 4);
}

TEST_F(GoldenRegionTest, AFrameRingIsReadWithItsReaders) {
  const absl::StatusOr<FlanHeader> planned =
      PlanFrameRing({.width = 8, .height = 6, .channels = 3, .capacity = 4});
  ASSERT_TRUE(planned.ok());
  FlanHeader ring = *planned;
  ring.head.store(17, std::memory_order_relaxed);
  ring.rolling_return.store(2.5, std::memory_order_relaxed);
  Place(golden_.flan_offset, ring);
  const RegionReport report = ReadOrFail(name_);
  EXPECT_EQ(report.frames->problem, "");
  EXPECT_EQ(report.frames->geometry.width, 8u);
  EXPECT_EQ(report.frames->geometry.capacity, 4u);
  EXPECT_EQ(report.frames->frames, 17u);
  EXPECT_EQ(report.frames->metrics.rolling_return, 2.5);
  EXPECT_EQ(report.frames->watched, false);
  placed_.Lock(static_cast<int64_t>(golden_.flan_offset) +
               kFlanReadersLockByte);
  EXPECT_EQ(ReadOrFail(name_).frames->watched, true);
  ring.slot_size = 5;
  Place(golden_.flan_offset, ring);
  EXPECT_NE(ReadOrFail(name_).frames->problem, "");
}

TEST_F(GoldenRegionTest, ATruncatedFileIsReportedToItsLastByte) {
  for (const uint64_t bytes :
       {uint64_t{328'831}, uint64_t{80'000}, uint64_t{4096}}) {
    placed_.Resize(bytes);
    const RegionReport report = ReadOrFail(name_);
    EXPECT_TRUE(report.has_header);
    EXPECT_EQ(report.task, "HalfCheetah-v5");
    EXPECT_FALSE(JudgeRegion(report).problems.empty());
  }
  for (const uint64_t bytes : {4095, 4, 0}) {
    placed_.Resize(bytes);
    const RegionReport report = ReadOrFail(name_);
    EXPECT_FALSE(report.has_header);
    EXPECT_EQ(JudgeRegion(report).problems.size(), 1u);
  }
}

TEST_F(GoldenRegionTest, ReportsAnyBytes) {
  for (const char fill : {'\x00', '\x01', '\x7f', '\x80', '\xff'}) {
    placed_.Write(0, std::string(golden_.region_size, fill));
    const RegionReport report = ReadOrFail(name_);
    EXPECT_TRUE(report.has_header);
    EXPECT_FALSE(JudgeRegion(report).problems.empty());
    EXPECT_LE(report.step_times.Quantile(0.99), 8.6e9);
  }
}

TEST_F(GoldenRegionTest, InspectionChangesNoByte) {
  for (int i = 0; i < 3; ++i) {
    if (i == 1) placed_.WriteWord(offsetof(LrbcHeader, magic), ~uint32_t{0});
    if (i == 2) placed_.Resize(5000);
    const std::string before = placed_.Bytes();
    ReadOrFail(name_);
    EXPECT_EQ(placed_.Bytes(), before);
  }
}

TEST(RegionReport, ReportsFileThatIsNotARegion) {
  const std::string name = UniqueRegionName("report");
  EXPECT_EQ(CodeOf(ReadRegionReport(name).status()), ErrorCode::kNotReady);
  for (const std::string& bytes : {std::string(), std::string(5000, 'x')}) {
    const PlacedFile placed(name, bytes, PlacedFile::kDead);
    EXPECT_EQ(CodeOf(ReadRegionReport(name).status()),
              ErrorCode::kLayoutMismatch);
  }
}

// The golden header with fields, and their table. The arrays need no content.
class FieldsReport : public GoldenRegionTest {
 protected:
  FieldsReport() : GoldenRegionTest(SampleFieldsHeader()) { WriteTable(); }
  void WriteTable() { PlaceTable(golden_.fields_offset, fields_); }

  std::vector<FieldRecord> fields_ = SampleFields();
};

TEST_F(FieldsReport, ListsEachFieldAndItsArray) {
  const RegionReport report = ReadOrFail(name_);
  EXPECT_EQ(report.header_problems, std::vector<std::string>());
  ASSERT_EQ(report.fields.size(), 7u);
  const FieldReport& obs = report.fields[0];
  EXPECT_EQ(obs.role, "obs");
  EXPECT_EQ(obs.path, "");
  EXPECT_EQ(obs.dtype, "float32");
  EXPECT_EQ(obs.shape, (std::vector<uint32_t>{33, 17}));
  EXPECT_EQ(obs.offset, golden_.obs_offset);
  EXPECT_EQ(obs.bytes, 33u * 17 * 4);
  const FieldReport& status = report.fields[4];
  EXPECT_EQ(status.role, "status");
  EXPECT_EQ(status.dtype, "uint8");
  EXPECT_EQ(status.shape, (std::vector<uint32_t>{33}));
  EXPECT_EQ(status.offset, fields_[4].offset);
  EXPECT_EQ(status.bytes, 33u);
  const RegionSection& last = report.sections.back();
  EXPECT_EQ(last.name, "field episode_length ''");
  EXPECT_EQ(last.bytes, 33u * 8);
}

TEST_F(FieldsReport, ReportsAnyTable) {
  for (size_t at = 0; at < fields_.size() * sizeof(FieldRecord); ++at) {
    auto* const bytes = reinterpret_cast<uint8_t*>(fields_.data());
    bytes[at] = static_cast<uint8_t>(bytes[at] ^ 0xFF);
    WriteTable();
    const RegionReport report = ReadOrFail(name_);
    EXPECT_EQ(report.header_problems.size(), 1u) << at;
    EXPECT_TRUE(report.fields.empty());
    bytes[at] = static_cast<uint8_t>(bytes[at] ^ 0xFF);
  }
  placed_.WriteWord(offsetof(LrbcHeader, field_count), ~uint32_t{0});
  EXPECT_FALSE(ReadOrFail(name_).header_problems.empty());
  placed_.WriteWord(offsetof(LrbcHeader, field_count), golden_.field_count);
  placed_.WriteWord(offsetof(LrbcHeader, fields_offset), ~uint64_t{0});
  EXPECT_FALSE(ReadOrFail(name_).header_problems.empty());
  placed_.WriteWord(offsetof(LrbcHeader, fields_offset), golden_.fields_offset);
  placed_.Resize(golden_.fields_offset + 300);
  const RegionReport report = ReadOrFail(name_);
  EXPECT_FALSE(report.header_problems.empty());
  EXPECT_TRUE(report.fields.empty());
}

// Changes each byte of the header, one at a time.
class ReportFlip : public GoldenRegionTest,
                   public testing::WithParamInterface<int> {};

TEST_P(ReportFlip, ReportsAnyByteAndDetectsWrongConstants) {
  for (size_t offset = 0; offset < kLrbcHeaderBytes; ++offset) {
    std::string byte(1, BytesOf(golden_)[offset]);
    const std::string kept = byte;
    byte[0] = static_cast<char>(byte[0] ^ GetParam());
    placed_.Write(offset, byte);
    const RegionReport report = ReadOrFail(name_);
    const RegionVerdict verdict = JudgeRegion(report);
    EXPECT_TRUE(report.has_header);
    // The report has a problem for every header that CheckHeader refuses.
    LrbcHeader flipped = golden_;
    std::memcpy(reinterpret_cast<char*>(&flipped) + offset, byte.data(), 1);
    EXPECT_EQ(report.header_problems.empty(),
              CheckHeader(flipped, golden_.region_size).ok())
        << offset;
    EXPECT_GE(verdict.problems.size(), report.header_problems.size());
    placed_.Write(offset, kept);
  }
  EXPECT_TRUE(ReadOrFail(name_).header_problems.empty());
}

INSTANTIATE_TEST_SUITE_P(Masks, ReportFlip, testing::Values(0x01, 0x80, 0xFF));

TEST(RegionReport, ReportsPhasesOfALiveRegion) {
  const std::string name = UniqueRegionName("report");
  EchoEngine engine(name, EchoSpec());
  RegionReport report = ReadOrFail(name);
  EXPECT_EQ(report.engine.life, Life::kAlive);
  EXPECT_EQ(report.engine.pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(report.engine.phase, Phase::kIdle);
  EXPECT_EQ(report.client.life, Life::kAbsent);
  EXPECT_EQ(report.frame_seq, 0u);

  ClientSide client = AttachOrFail(name);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
  report = ReadAfter(name, 10);
  EXPECT_EQ(report.client.life, Life::kAlive);
  EXPECT_EQ(report.client.phase, Phase::kIdle);
  EXPECT_EQ(report.frame_seq, 10u);
  EXPECT_EQ(report.exchange, ExchangeState::kIdle);
  EXPECT_EQ(report.round_trips.count(), 10u);
  EXPECT_GT(report.round_trips.Mean(), 0);
  EXPECT_LE(report.step_times.Quantile(0.5), report.step_times.SlowestEnd());
  EXPECT_EQ(report.to_client.problem, "");
  EXPECT_EQ(report.to_engine.messages, 0u);
  EXPECT_FALSE(report.frames.has_value());
  EXPECT_FALSE(report.images.has_value());
  EXPECT_FALSE(report.gpu.has_value());
  const RegionVerdict verdict = JudgeRegion(report);
  EXPECT_TRUE(verdict.problems.empty());
  EXPECT_TRUE(verdict.remarks.empty());
}

// The region of SampleGpuHeader, with all tables. Worker 2 has the slot of
// SampleWorkerSlot; all others have not started.
class WholeRegionTest : public GoldenRegionTest {
 protected:
  WholeRegionTest() : GoldenRegionTest(SampleGpuHeader()) {
    PlaceTable(golden_.fields_offset, SampleFields());
    PlaceTable(golden_.gpu_arrays_offset, arrays_);
    const std::vector<WorkerRows> workers = SampleWorkers();
    for (size_t worker = 0; worker < workers.size(); ++worker) {
      Place(WorkerSlotOffset(golden_, worker), workers[worker]);
    }
    Place(WorkerSlotOffset(golden_, 2), SampleWorkerSlot());
  }

  std::vector<FieldRecord> arrays_ = SampleGpuArrays();
};

TEST_F(WholeRegionTest, EachWorkerIsReported) {
  placed_.Lock(WorkerLockByte(golden_, 2));
  placed_.WriteWord(offsetof(LrbcHeader, engine_phase),
                    PackPhase(Phase::kIdle, MonotonicNanos()));
  const RegionReport report = ReadOrFail(name_);
  EXPECT_EQ(report.header_problems, std::vector<std::string>());
  ASSERT_EQ(report.workers.size(), 11u);
  EXPECT_EQ(report.workers[0].life, Life::kAbsent);
  EXPECT_EQ(report.workers[10].first_env, 30u);
  const WorkerReport& worker = report.workers[2];
  EXPECT_EQ(worker.life, Life::kAlive);
  EXPECT_EQ(worker.pid, 40005u);
  EXPECT_EQ(worker.first_env, 6u);
  EXPECT_EQ(worker.num_envs, 3u);
  EXPECT_EQ(worker.env, 7u);
  EXPECT_EQ(worker.phase, Phase::kStepping);
  EXPECT_FALSE(worker.done);
  EXPECT_EQ(worker.busy_ns, 323'456'789u);
  // During an exchange the workers have the engine's phase.
  EXPECT_EQ(report.engine.phase, Phase::kStepping);
}

TEST_F(WholeRegionTest, AWorkerWithoutItsLockIsDead) {
  EXPECT_EQ(ReadOrFail(name_).workers[2].life, Life::kDead);
  placed_.WriteWord(WorkerSlotOffset(golden_, 2) + offsetof(WorkerSlot, phase),
                    PackPhase(Phase::kStopped, 1));
  EXPECT_EQ(ReadOrFail(name_).workers[2].life, Life::kAbsent);
}

TEST_F(WholeRegionTest, OverwrittenRowsAreAProblem) {
  placed_.WriteWord(WorkerSlotOffset(golden_, 3), uint32_t{8});
  const RegionReport report = ReadOrFail(name_);
  ASSERT_FALSE(report.header_problems.empty());
  EXPECT_TRUE(absl::StrContains(report.header_problems[0], "workers_crc32"));
}

TEST_F(WholeRegionTest, ArraysOnAGpuAreReported) {
  const RegionReport report = ReadOrFail(name_);
  EXPECT_EQ(report.header_problems, std::vector<std::string>());
  ASSERT_TRUE(report.gpu.has_value());
  EXPECT_EQ(report.gpu->path, "CUDA IPC");
  EXPECT_EQ(report.gpu->device, "GPU-41424344-4546-4748-494a-4b4c4d4e4f50");
  EXPECT_EQ(report.gpu->bytes, golden_.gpu_alloc_size);
  EXPECT_TRUE(report.gpu->fills_cpu);
  ASSERT_EQ(report.gpu->arrays.size(), 4U);
  const FieldReport& images = report.gpu->arrays[3];
  EXPECT_EQ(images.role, "images");
  EXPECT_EQ(images.dtype, "uint8");
  EXPECT_EQ(images.shape, (std::vector<uint32_t>{33, golden_.image_height,
                                                 golden_.image_width, 3}));
  EXPECT_EQ(images.offset, arrays_[3].offset);
}

TEST_F(WholeRegionTest, AnOverwrittenTableOfAGpuIsAProblem) {
  arrays_[0].offset += 256;
  PlaceTable(golden_.gpu_arrays_offset, arrays_);
  const RegionReport report = ReadOrFail(name_);
  ASSERT_FALSE(report.header_problems.empty());
  EXPECT_TRUE(absl::StrContains(report.header_problems[0], "gpu_arrays_crc32"));
  EXPECT_TRUE(report.gpu->arrays.empty());
}

TEST_F(EchoSession, ReportsFailedExchange) {
  engine_.FailNext();
  ASSERT_EQ(Step(client_, kActions), ErrorCode::kEngineFailed);
  const RegionReport report = ReadOrFail(name_);
  EXPECT_EQ(report.status, ErrorCode::kEngineFailed);
  EXPECT_EQ(report.error_text, "joint 3 \\x01 exploded");
  EXPECT_TRUE(JudgeRegion(report).problems.empty());
  EXPECT_EQ(JudgeRegion(report).remarks.size(), 1u);
}

TEST(RegionReport, TwoReportsGiveRates) {
  const std::string name = UniqueRegionName("report");
  EchoEngine engine(name, EchoSpec());
  auto client = std::make_unique<ClientSide>(AttachOrFail(name));
  ASSERT_EQ(Step(*client, kActions), ErrorCode::kOk);
  const RegionReport earlier = ReadAfter(name, 1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Step(*client, kActions), ErrorCode::kOk);
  }
  const RegionReport later = ReadAfter(name, 101);
  const std::optional<RegionRates> rates = RatesBetween(earlier, later);
  ASSERT_TRUE(rates.has_value());
  EXPECT_NEAR(rates->exchanges_per_sec * rates->secs, 100, 1e-6);
  EXPECT_EQ(rates->step_times.count(), 100u);
  EXPECT_EQ(rates->round_trips.count(), 100u);
  EXPECT_GT(rates->busy_share, 0);
  EXPECT_LE(rates->busy_share, 1);
  EXPECT_FALSE(RatesBetween(later, earlier).has_value());
  EXPECT_FALSE(RatesBetween(later, later).has_value());

  // A new client clears its histogram: all its counts are new.
  client.reset();
  client = std::make_unique<ClientSide>(AttachOrFail(name));
  ASSERT_EQ(Step(*client, kActions), ErrorCode::kOk);
  const std::optional<RegionRates> after =
      RatesBetween(later, ReadOrFail(name));
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->round_trips.count(), 1u);
}

TEST(RegionReport, ARestartedEngineGivesNoRates) {
  const std::string name = UniqueRegionName("report");
  RegionReport earlier;
  {
    EchoEngine engine(name, EchoSpec());
    earlier = ReadOrFail(name);
  }
  EchoEngine engine(name, EchoSpec());
  EXPECT_FALSE(RatesBetween(earlier, ReadOrFail(name)).has_value());
}

TEST(RegionReport, NamesFeaturesAndModes) {
  EXPECT_EQ(FeatureNames(kFeatureArrays | kFeatureFrames | 1u << 30),
            (std::vector<std::string>{"arrays", "frames", "bit 30"}));
  EXPECT_EQ(FeatureNames(kFeatureFields), std::vector<std::string>{"fields"});
  EXPECT_EQ(FeatureNames(kFeatureWorkers | kFeatureSubsets),
            (std::vector<std::string>{"workers", "subsets"}));
  EXPECT_EQ(FeatureNames(~uint64_t{0}).size(), 64u);
  EXPECT_EQ(NameOf(AutoresetMode::kNextStep), "NEXT_STEP");
  EXPECT_EQ(NameOf(static_cast<AutoresetMode>(12)), "12");
}

}  // namespace
}  // namespace tandem
