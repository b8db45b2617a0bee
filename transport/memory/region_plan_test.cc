#include "transport/memory/region_plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/layout/image_slot.h"
#include "schema/layout/layout_crc.h"
#include "schema/layout/worker_slot.h"

namespace tandem {
namespace {

RegionSpec Spec(uint32_t envs, uint32_t obs, uint32_t act) {
  return {.num_envs = envs, .obs_size = obs, .act_size = act, .task = "plan"};
}

LrbcHeader Plan(const RegionSpec& spec) {
  absl::StatusOr<LrbcHeader> header = PlanRegion(spec, 1234);
  EXPECT_TRUE(header.ok()) << header.status();
  return *header;
}

TEST(RegionPlan, ClientAcceptsThePlanOfTheEngine) {
  for (const RegionSpec& spec :
       {Spec(1, 1, 1), Spec(1, 4, 1), Spec(3, 17, 6), Spec(64, 32, 8),
        Spec(4096, 100, 12), Spec(1, kMaxFloatsPerEnv, 1)}) {
    const LrbcHeader header = Plan(spec);
    EXPECT_TRUE(CheckHeader(header, header.region_size).ok());
    EXPECT_EQ(header.generation, 1234u);
    EXPECT_EQ(TaskOf(header), "plan");
    for (const uint64_t offset :
         {header.obs_offset, header.act_offset, header.rewards_offset,
          header.cmd_s2c_offset, header.final_obs_offset}) {
      EXPECT_EQ(offset % kSectionAlignment, 0u);
    }
  }
}

TEST(RegionPlan, ImageSlotsAreRoundedUpAndChecked) {
  RegionSpec spec = Spec(1, 1, 1);
  EXPECT_EQ(Plan(spec).feature_bits & kFeatureImageSlots, 0u);
  spec.image_slot_bytes = 1000;
  const LrbcHeader header = Plan(spec);
  EXPECT_NE(header.feature_bits & kFeatureImageSlots, 0u);
  EXPECT_EQ(header.image_slot_bytes, 1024u);
  EXPECT_TRUE(CheckHeader(header, header.region_size).ok());
  LrbcHeader wrong = header;
  wrong.image_slot_bytes = 2048;
  EXPECT_TRUE(absl::StrContains(CheckHeader(wrong, wrong.region_size).message(),
                                "image_slots_crc32"));
  wrong.image_slots_crc32 = ImageSlotsCrc(wrong);
  EXPECT_TRUE(absl::StrContains(CheckHeader(wrong, wrong.region_size).message(),
                                "image slots"));
  for (const uint32_t bytes : {kMaxImageSlotBytes + 1, ~0u}) {
    spec.image_slot_bytes = bytes;
    const absl::Status status = PlanRegion(spec, 1).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat(bytes)));
  }
}

RegionSpec WithWorkers(uint32_t envs, uint32_t workers) {
  RegionSpec spec = Spec(envs, 1, 1);
  spec.workers = workers;
  return spec;
}

TEST(RegionPlan, WorkersShareTheEnvironmentsEvenly) {
  EXPECT_TRUE(PlanWorkers(Plan(Spec(7, 1, 1))).empty());
  for (const uint32_t workers : {1u, 2u, 3u, 7u}) {
    const LrbcHeader header = Plan(WithWorkers(7, workers));
    EXPECT_NE(header.feature_bits & kFeatureWorkers, 0u);
    const std::vector<WorkerRows> rows = PlanWorkers(header);
    ASSERT_EQ(rows.size(), workers);
    uint32_t next = 0;
    for (const WorkerRows& mine : rows) {
      EXPECT_EQ(mine.first_env, next);
      EXPECT_GE(mine.num_envs, 7 / workers);
      EXPECT_LE(mine.num_envs, 7 / workers + 1);
      next += mine.num_envs;
    }
    EXPECT_EQ(next, 7u);
    EXPECT_TRUE(
        CheckHeader(header, header.region_size, {.workers = rows}).ok());
  }
  for (const auto& [envs, workers] :
       {std::pair{1u, 2u}, {kMaxWorkers + 1, kMaxWorkers + 1}, {1u, ~0u}}) {
    EXPECT_EQ(CodeOf(PlanRegion(WithWorkers(envs, workers), 1).status()),
              ErrorCode::kInvalidArgument);
  }
}

TEST(RegionPlan, RefusesRowsThatAreNotAllEnvironmentsInOrder) {
  LrbcHeader header = Plan(WithWorkers(7, 3));
  const std::vector<WorkerRows> good = PlanWorkers(header);
  const auto problem = [&](const std::vector<WorkerRows>& rows) {
    return std::string(
        CheckHeader(header, header.region_size, {.workers = rows}).message());
  };
  std::vector<WorkerRows> rows = good;
  rows[1].first_env = 2;
  EXPECT_TRUE(absl::StrContains(problem(rows), "workers_crc32"));
  for (const auto& [worker, wrong] : {std::pair{1, WorkerRows{2, 2}},
                                      {1, WorkerRows{3, 0}},
                                      {1, WorkerRows{3, ~0u}},
                                      {2, WorkerRows{5, 1}}}) {
    rows = good;
    rows[worker] = wrong;
    header.workers_crc32 = WorkersCrc(header, rows);
    EXPECT_TRUE(absl::StrContains(problem(rows), "env")) << problem(rows);
  }
  rows = good;
  rows.pop_back();
  EXPECT_TRUE(absl::StrContains(problem(rows), "the copied workers"));
}

TEST(RegionPlan, AnotherNumberOfWorkersIsAnotherSchema) {
  const absl::Status status =
      CheckSameSchema(Plan(WithWorkers(8, 2)), Plan(WithWorkers(8, 3)));
  EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch);
  EXPECT_TRUE(absl::StrContains(status.message(), "num_workers")) << status;
}

TEST(RegionPlan, InfosAndDescriptionHaveASectionOfTheirOwn) {
  RegionSpec spec = Spec(33, 17, 6);
  EXPECT_EQ(Plan(spec).infos_offset, 0u);
  EXPECT_EQ(InfosOf(Plan(spec)).description_bytes, 0u);
  spec.description = "{}";
  EXPECT_EQ(InfosOf(Plan(spec)).description_bytes, 2u);
  spec.info_size = 2;
  const LrbcHeader header = Plan(spec);
  EXPECT_TRUE(CheckHeader(header, header.region_size).ok());
  const InfosPlan infos = InfosOf(header);
  EXPECT_EQ(infos.infos % kSectionAlignment, 0u);
  EXPECT_GE(infos.final_infos, infos.infos + 33 * 2 * 8);
  EXPECT_GE(infos.description, infos.final_infos + 33 * 2 * 8);
  EXPECT_EQ(infos.description_bytes, 2u);
  EXPECT_LE(infos.description + 2, header.region_size);
}

TEST(RegionPlan, RefusesInfosThatDoNotFitTheirSection) {
  RegionSpec spec = Spec(33, 17, 6);
  spec.info_size = 2;
  spec.description = "{}";
  const LrbcHeader good = Plan(spec);
  LrbcHeader larger_rows = good;
  larger_rows.info_size = 5;
  LrbcHeader no_section = good;
  no_section.infos_offset = 0;
  LrbcHeader endless = good;
  endless.infos_size = ~uint64_t{0};
  for (LrbcHeader* header : {&larger_rows, &no_section, &endless}) {
    header->layout_crc32 = LayoutCrc(*header);
    EXPECT_EQ(CodeOf(CheckHeader(*header, header->region_size)),
              ErrorCode::kLayoutMismatch);
  }
}

TEST(RegionPlan, AFrameRingHasASectionOfItsOwnAndAFeatureBit) {
  RegionSpec spec = Spec(33, 17, 6);
  EXPECT_EQ(Plan(spec).flan_offset, 0u);
  EXPECT_EQ(Plan(spec).feature_bits & kFeatureFrames, 0u);
  spec.frames = {.width = 7, .height = 5, .capacity = 3, .metadata_bytes = 9};
  const LrbcHeader header = Plan(spec);
  EXPECT_TRUE(CheckHeader(header, header.region_size).ok());
  EXPECT_EQ(header.feature_bits & kFeatureFrames, kFeatureFrames);
  EXPECT_EQ(header.flan_offset % kSectionAlignment, 0u);
  EXPECT_GE(header.flan_size, 80u + 3 * (16 + 7 * 5 * 3 + 9));
  EXPECT_LE(header.flan_offset + header.flan_size, header.region_size);

  LrbcHeader too_small = header;
  too_small.flan_size = 79;
  LrbcHeader endless = header;
  endless.flan_size = ~uint64_t{0};
  LrbcHeader elsewhere = header;
  elsewhere.flan_offset = header.obs_offset;
  for (LrbcHeader* broken : {&too_small, &endless, &elsewhere}) {
    broken->layout_crc32 = LayoutCrc(*broken);
    EXPECT_EQ(CodeOf(CheckHeader(*broken, broken->region_size)),
              ErrorCode::kLayoutMismatch);
  }
  spec.frames.width = 0;
  EXPECT_EQ(CodeOf(PlanRegion(spec, 1).status()), ErrorCode::kInvalidArgument);
}

TEST(RegionPlan, ImagesHaveASectionOfTheirOwnAndAFeatureBit) {
  RegionSpec spec = Spec(33, 17, 6);
  const LrbcHeader without = Plan(spec);
  EXPECT_EQ(without.image_offset, 0u);
  EXPECT_EQ(without.feature_bits & kFeatureImages, 0u);
  spec.images = {.width = 7, .height = 5};
  const LrbcHeader header = Plan(spec);
  EXPECT_TRUE(CheckHeader(header, header.region_size).ok());
  EXPECT_EQ(header.feature_bits & kFeatureImages, kFeatureImages);
  EXPECT_EQ(header.image_offset, without.region_size);
  EXPECT_EQ(header.image_width, 7u);
  EXPECT_EQ(header.image_height, 5u);
  EXPECT_EQ(header.image_channels, 3u);
  EXPECT_LE(header.image_offset + 33 * 7 * 5 * 3, header.region_size);
  EXPECT_EQ(header.feature_bits & kFeatureFinalImages, kFeatureFinalImages);
  const ImagesPlan plan = ImagesOf(header);
  EXPECT_EQ(plan.images, header.image_offset);
  EXPECT_EQ(plan.bytes, 33u * 7 * 5 * 3);
  EXPECT_GE(plan.final_images, plan.images + plan.bytes);
  EXPECT_EQ(plan.final_images % kSectionAlignment, 0u);
  EXPECT_EQ(plan.final_bytes, plan.bytes);
  EXPECT_LE(plan.final_images + plan.final_bytes, header.region_size);
  LrbcHeader from_before = header;
  from_before.feature_bits &= ~kFeatureFinalImages;
  from_before.layout_crc32 = LayoutCrc(from_before);
  EXPECT_TRUE(CheckHeader(from_before, header.region_size).ok());
  EXPECT_EQ(ImagesOf(from_before).final_bytes, 0u);
  EXPECT_EQ(ImagesOf(without).bytes, 0u);

  LrbcHeader too_large = header;
  too_large.image_height = 16;
  LrbcHeader endless = header;
  endless.image_width = ~uint32_t{0};
  LrbcHeader elsewhere = header;
  elsewhere.image_offset = header.obs_offset;
  for (LrbcHeader* broken : {&too_large, &endless, &elsewhere}) {
    broken->layout_crc32 = LayoutCrc(*broken);
    EXPECT_EQ(CodeOf(CheckHeader(*broken, broken->region_size)),
              ErrorCode::kLayoutMismatch);
  }
  LrbcHeader taller = header;
  taller.image_height = 6;
  EXPECT_EQ(CodeOf(CheckSameSchema(header, taller)),
            ErrorCode::kLayoutMismatch);
  for (const ImageSize size : {ImageSize{.width = 7, .height = 0},
                               ImageSize{.width = 1u << 20, .height = 5}}) {
    spec.images = size;
    EXPECT_EQ(CodeOf(PlanRegion(spec, 1).status()),
              ErrorCode::kInvalidArgument);
  }
}

TEST(RegionPlan, RefusesInvalidSizes) {
  RegionSpec odd_ring = Spec(1, 1, 1);
  odd_ring.ring_bytes = 1000;
  RegionSpec small_ring = Spec(1, 1, 1);
  small_ring.ring_bytes = 32;
  RegionSpec long_task = Spec(1, 1, 1);
  long_task.task = std::string(64, 't');
  RegionSpec many_infos = Spec(1, 1, 1);
  many_infos.info_size = kMaxFloatsPerEnv + 1;
  for (const RegionSpec& spec :
       {Spec(0, 4, 1), Spec(1, 0, 1), Spec(1, 4, 0), Spec(kMaxEnvs + 1, 1, 1),
        Spec(1, kMaxFloatsPerEnv + 1, 1), Spec(1, 1, 0xFFFFFFFF),
        Spec(kMaxEnvs, kMaxFloatsPerEnv, 1), odd_ring, small_ring, long_task,
        many_infos}) {
    EXPECT_EQ(CodeOf(PlanRegion(spec, 0).status()),
              ErrorCode::kInvalidArgument);
  }
}

TEST(RegionPlan, RefusesAFileOfAnotherLength) {
  const LrbcHeader header = Plan(Spec(3, 17, 6));
  EXPECT_EQ(CodeOf(CheckHeader(header, header.region_size - 1)),
            ErrorCode::kLayoutMismatch);
  EXPECT_EQ(CodeOf(CheckHeader(header, 4096)), ErrorCode::kLayoutMismatch);
}

TEST(RegionPlan, RefusesOtherFormatsByTheFirstDifference) {
  const LrbcHeader good = Plan(Spec(3, 17, 6));
  LrbcHeader header = good;
  header.magic = 0x4E414C46;
  EXPECT_NE(CheckHeader(header, good.region_size).message().find("0x4E414C46"),
            absl::string_view::npos);
  header = good;
  header.version = 2;
  EXPECT_NE(CheckHeader(header, good.region_size)
                .message()
                .find("version 1, "
                      "found 2"),
            absl::string_view::npos);
}

TEST(RegionPlan, RefusesADescriptionThatIsTooLong) {
  RegionSpec spec = Spec(1, 1, 1);
  spec.description.assign((size_t{64} << 20) + 1, ' ');
  EXPECT_EQ(CodeOf(PlanRegion(spec, 1).status()), ErrorCode::kInvalidArgument);
}

RegionSpec WithInfos(uint32_t info_size, std::string description) {
  RegionSpec spec = Spec(3, 17, 6);
  spec.info_size = info_size;
  spec.description = std::move(description);
  return spec;
}

TEST(RegionPlan, NamesTheFieldInWhichARestartedEngineDiffers) {
  const LrbcHeader before = Plan(WithInfos(2, "{}"));
  EXPECT_TRUE(CheckSameSchema(before, before).ok());
  for (const auto& [spec, field] :
       std::vector<std::pair<RegionSpec, std::string>>{
           {Spec(4, 17, 6), "num_envs"},
           {Spec(3, 18, 6), "obs_size"},
           {Spec(3, 17, 7), "act_size"},
           {WithInfos(3, "{}"), "info_size"},
           {WithInfos(2, "{} "), "infos_size"}}) {
    const absl::Status status = CheckSameSchema(before, Plan(spec));
    EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch);
    EXPECT_NE(status.message().find(field), absl::string_view::npos) << status;
  }
}

// A simple second implementation of CheckHeader's guarantee: every byte of
// every section is in the file, after the header, and in no other section.
void ExpectSectionsApart(const LrbcHeader& header) {
  const uint64_t envs = header.num_envs;
  // Two arrays at multiples of 128, then the text.
  const uint64_t infos = envs * header.info_size * 8;
  const uint64_t final_infos_offset =
      header.infos_offset + (infos + 127) / 128 * 128;
  const uint64_t description_offset =
      final_infos_offset + (infos + 127) / 128 * 128;
  const uint64_t infos_end = header.infos_offset + header.infos_size;
  std::vector<std::pair<uint64_t, uint64_t>> sections = {
      {header.obs_offset, envs * header.obs_size * 4},
      {header.act_offset, envs * header.act_size * 4},
      {header.rewards_offset, envs * 4},
      {header.dones_offset, envs},
      {header.truncateds_offset, envs},
      {header.terminateds_offset, envs},
      {header.resets_offset, envs},
      {header.final_obs_offset, envs * header.obs_size * 4},
      {header.reset_seeds_offset, envs * 8},
      {header.cmd_s2c_offset, 128 + header.cmd_ring_size},
      {header.cmd_c2s_offset, 128 + header.cmd_ring_size}};
  if (header.infos_offset != 0) {
    ASSERT_GE(infos_end, description_offset);
    sections.push_back({header.infos_offset, infos});
    sections.push_back({final_infos_offset, infos});
    sections.push_back({description_offset, infos_end - description_offset});
  }
  std::vector<bool> taken(header.region_size, false);
  for (const auto& [offset, bytes] : sections) {
    ASSERT_GE(offset, 4096u);
    ASSERT_LE(offset + bytes, header.region_size);
    for (uint64_t at = offset; at < offset + bytes; ++at) {
      ASSERT_FALSE(taken[at]);
      taken[at] = true;
    }
  }
}

// Small changes with a recomputed checksum: a header that passes must still be
// safe to use.
TEST(RegionPlan, AcceptedHeadersAreSafeToUse) {
  RegionSpec spec = Spec(5, 3, 2);
  spec.ring_bytes = 64;
  spec.info_size = 3;
  spec.description = "{}";
  const LrbcHeader good = Plan(spec);
  ExpectSectionsApart(good);
  std::mt19937 random(11);
  int passed = 0;
  constexpr int kRuns = 20'000;
  for (int run = 0; run < kRuns; ++run) {
    LrbcHeader header = good;
    auto* bytes = reinterpret_cast<uint8_t*>(&header);
    const int changes = std::uniform_int_distribution<>(1, 3)(random);
    for (int i = 0; i < changes; ++i) {
      // Offsets and sizes: small numbers are the dangerous ones.
      const size_t at =
          std::uniform_int_distribution<size_t>(0, 1)(random) == 0
              ? std::uniform_int_distribution<size_t>(16, 31)(random)
              : std::uniform_int_distribution<size_t>(384, 735)(random);
      bytes[at] = static_cast<uint8_t>(
          std::uniform_int_distribution<>(0, 7)(random) << (run % 3 * 2));
    }
    header.layout_crc32 = LayoutCrc(header);
    const absl::Status status = CheckHeader(header, good.region_size);
    if (status.ok()) {
      ++passed;
      ExpectSectionsApart(header);
    } else {
      EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch);
    }
  }
  EXPECT_GT(passed, kRuns / 100);
  EXPECT_LT(passed, kRuns);
}

}  // namespace
}  // namespace tandem
