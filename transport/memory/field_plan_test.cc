// Tables of fields, as the engine plans them and as a client checks them.
//
// Length: a wrong input for each rule.

#include "transport/memory/field_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "schema/goldens/testing/samples.h"
#include "schema/layout/field.h"
#include "schema/layout/layout_crc.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/region_plan.h"

namespace tandem {
namespace {

FieldSpec Obs(FieldType type, std::vector<uint32_t> shape, std::string path) {
  return {.role = FieldRole::kObs,
          .type = type,
          .shape = std::move(shape),
          .path = std::move(path)};
}

FieldSpec Action(FieldType type, std::vector<uint32_t> shape,
                 std::string path) {
  return {.role = FieldRole::kAction,
          .type = type,
          .shape = std::move(shape),
          .path = std::move(path)};
}

FieldSpec Number(FieldRole role, FieldType type) {
  return {.role = role, .type = type, .shape = {}, .path = ""};
}

// Observations and an action without float32 rows, and a field of each other
// role.
RegionSpec TypedSpec() {
  RegionSpec spec = {.num_envs = 3, .obs_size = 0, .act_size = 0, .task = "t"};
  spec.ring_bytes = 64;
  spec.fields = {Obs(FieldType::kUint8, {8, 6, 3}, "/image"),
                 Obs(FieldType::kFloat64, {5}, "/state~1old"),
                 Action(FieldType::kInt64, {}, ""),
                 Number(FieldRole::kReward, FieldType::kFloat64),
                 Number(FieldRole::kStatus, FieldType::kUint8),
                 Number(FieldRole::kEpisodeReturn, FieldType::kFloat64),
                 Number(FieldRole::kEpisodeLength, FieldType::kInt64)};
  return spec;
}

// The same with float32 rows.
RegionSpec RowsSpec() {
  RegionSpec spec = TypedSpec();
  spec.obs_size = 17;
  spec.act_size = 6;
  spec.fields.erase(spec.fields.begin(), spec.fields.begin() + 3);
  return spec;
}

// A header and its table, as a client has copied them.
struct Copy {
  LrbcHeader header;
  std::vector<FieldRecord> fields;

  absl::Status Check() const {
    return CheckHeader(header, header.region_size, {.fields = fields});
  }
  // Makes the checksums fit.
  void Seal() {
    header.field_count = static_cast<uint32_t>(fields.size());
    header.fields_crc32 = FieldsCrc(header, fields);
    header.layout_crc32 = LayoutCrc(header);
  }
};

Copy PlanOf(const RegionSpec& spec) {
  const absl::StatusOr<LrbcHeader> header = PlanRegion(spec, 1234);
  EXPECT_TRUE(header.ok()) << header.status();
  return {*header, PlanFields(spec, *header)};
}

void SetPath(FieldRecord* field, absl::string_view path) {
  std::memset(field->path, 0, sizeof(field->path));
  path.copy(field->path, sizeof(field->path));
}

TEST(FieldPlan, TypesHaveNumPysNamesAndSizes) {
  EXPECT_STREQ(NameOf(FieldType::kBool), "bool");
  EXPECT_STREQ(NameOf(FieldType::kInt64), "int64");
  EXPECT_STREQ(NameOf(FieldType::kFloat64), "float64");
  EXPECT_STREQ(NameOf(static_cast<FieldType>(13)), "unknown");
  EXPECT_EQ(ElementBytes(FieldType::kBool), 1u);
  EXPECT_EQ(ElementBytes(FieldType::kFloat16), 2u);
  EXPECT_EQ(ElementBytes(FieldType::kFloat32), 4u);
  EXPECT_EQ(ElementBytes(FieldType::kUint64), 8u);
  EXPECT_EQ(ElementBytes(static_cast<FieldType>(0)), 0u);
  EXPECT_STREQ(NameOf(FieldRole::kEpisodeLength), "episode_length");
  EXPECT_STREQ(NameOf(static_cast<FieldRole>(0)), "unknown");
}

TEST(FieldPlan, ClientAcceptsThePlanOfTheEngine) {
  RegionSpec many = TypedSpec();
  for (int i = 0; i < 2000; ++i) {
    many.fields.push_back(Obs(FieldType::kFloat16, {3}, absl::StrCat("/", i)));
  }
  RegionSpec rows_and_action = RowsSpec();
  rows_and_action.act_size = 0;
  rows_and_action.fields.push_back(Action(FieldType::kBool, {2, 2}, "/0"));
  for (const RegionSpec& spec :
       {TypedSpec(), RowsSpec(), many, rows_and_action}) {
    const Copy plan = PlanOf(spec);
    EXPECT_NE(plan.header.feature_bits & kFeatureFields, 0u);
    EXPECT_EQ(plan.header.field_count, plan.fields.size());
    EXPECT_TRUE(CheckHeader(plan.header, plan.header.region_size).ok());
    EXPECT_TRUE(plan.Check().ok()) << plan.Check();
    for (const FieldRecord& field : plan.fields) {
      EXPECT_EQ(field.offset % kSectionAlignment, 0u);
    }
  }
}

TEST(FieldPlan, ARegionWithoutFieldsHasNoTable) {
  RegionSpec spec = RowsSpec();
  spec.fields.clear();
  const Copy plan = PlanOf(spec);
  EXPECT_EQ(plan.header.feature_bits & kFeatureFields, 0u);
  EXPECT_EQ(plan.header.fields_offset, 0u);
  EXPECT_EQ(plan.header.field_count, 0u);
  EXPECT_TRUE(plan.fields.empty());
}

TEST(FieldPlan, EachObservationIsFollowedByItsFinalObservation) {
  const Copy plan = PlanOf(TypedSpec());
  ASSERT_EQ(plan.fields.size(), 9u);
  EXPECT_EQ(plan.header.obs_size, 0u);
  EXPECT_EQ(FieldText(plan.fields[0]), "field obs '/image'");
  EXPECT_EQ(FieldText(plan.fields[1]), "field final_obs '/image'");
  EXPECT_EQ(FieldText(plan.fields[2]), "field obs '/state~1old'");
  EXPECT_EQ(FieldText(plan.fields[4]), "field action ''");
  EXPECT_EQ(FieldBytes(plan.fields[1], 3), 3u * 8 * 6 * 3);
  EXPECT_EQ(FieldBytes(plan.fields[2], 3), 3u * 5 * 8);
  EXPECT_EQ(FieldBytes(plan.fields[4], 3), 3u * 8);
}

TEST(FieldPlan, Float32RowsAreFieldsAtTheHeadersOffsets) {
  const Copy plan = PlanOf(RowsSpec());
  ASSERT_EQ(plan.fields.size(), 7u);
  const uint64_t offsets[] = {plan.header.obs_offset,
                              plan.header.final_obs_offset,
                              plan.header.act_offset};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.fields[i].offset, offsets[i]);
    EXPECT_EQ(plan.fields[i].type, FieldType::kFloat32);
    EXPECT_EQ(plan.fields[i].dims, 1);
    EXPECT_EQ(plan.fields[i].shape[0], i < 2 ? 17u : 6u);
    EXPECT_EQ(plan.fields[i].path[0], '\0');
  }
}

TEST(FieldPlan, TheGoldenTablePassesTheChecks) {
  const Copy golden = {SampleFieldsHeader(), SampleFields()};
  EXPECT_TRUE(golden.Check().ok()) << golden.Check();
}

TEST(FieldPlan, AClientWithoutFieldsRefusesARegionWithoutFloat32Rows) {
  Copy plan = PlanOf(TypedSpec());
  plan.header.feature_bits &= ~kFeatureFields;  // unknown to an older client
  plan.Seal();
  const absl::Status status = CheckHeader(plan.header, plan.header.region_size);
  EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch);
  EXPECT_TRUE(absl::StrContains(status.message(), "obs_size")) << status;
}

TEST(FieldPlan, RefusesInvalidSpecs) {
  const auto with = [](FieldSpec field) {
    RegionSpec spec = TypedSpec();
    spec.fields.push_back(std::move(field));
    return spec;
  };
  const auto only = [](std::vector<FieldSpec> fields) {
    RegionSpec spec = TypedSpec();
    spec.fields = std::move(fields);
    return spec;
  };
  const auto replaced = [](size_t index, FieldSpec field) {
    RegionSpec spec = TypedSpec();
    spec.fields[index] = std::move(field);
    return spec;
  };
  const FieldSpec plain_obs = Obs(FieldType::kUint8, {}, "");
  const FieldSpec plain_action = Action(FieldType::kInt32, {}, "");
  RegionSpec obs_beside_rows = RowsSpec();
  obs_beside_rows.fields.push_back(Obs(FieldType::kUint8, {2}, "/image"));
  RegionSpec action_beside_rows = RowsSpec();
  action_beside_rows.fields.push_back(plain_action);
  RegionSpec too_many = TypedSpec();
  for (uint32_t i = 0; i < kMaxFields; ++i) {
    too_many.fields.push_back(
        Action(FieldType::kBool, {}, absl::StrCat("/", i)));
  }
  RegionSpec too_large = TypedSpec();
  too_large.num_envs = kMaxEnvs;
  for (int i = 0; i < 100; ++i) {
    too_large.fields.push_back(
        Obs(FieldType::kInt64, {kMaxFieldDim}, absl::StrCat("/", i)));
  }
  const std::pair<RegionSpec, const char*> kWrong[] = {
      {only({plain_action}), "the role obs"},
      {only({plain_obs}), "the role action"},
      {obs_beside_rows, "field obs '/image'"},
      {action_beside_rows, "field action ''"},
      {with(Obs(FieldType::kInt8, {}, "/image")), "once, found it twice"},
      {with({.role = FieldRole::kFinalObs, .path = "/other"}),
       "field final_obs '/other'"},
      {with({.role = FieldRole::kFinalObs, .path = "/image"}), "twice"},
      {with({.role = static_cast<FieldRole>(0), .path = "/a"}), "the role of"},
      {with({.role = static_cast<FieldRole>(8), .path = "/a"}), "the role of"},
      {with(Obs(static_cast<FieldType>(0), {}, "/a")), "the type of"},
      {with(Obs(static_cast<FieldType>(13), {}, "/a")), "the type of"},
      {with(Obs(FieldType::kBool, {3, 0}, "/a")), "shape[1]"},
      {with(Obs(FieldType::kBool, {kMaxFieldDim + 1}, "/a")), "shape[0]"},
      {with(Obs(FieldType::kBool, {1u << 13, 1u << 13}, "/a")), "the values"},
      {with(Obs(FieldType::kBool, std::vector<uint32_t>(9, 1), "/a")),
       "8 dimensions"},
      {with(Obs(FieldType::kBool, {}, "a")), "a JSON pointer"},
      {with(Obs(FieldType::kBool, {}, "/a~")), "a JSON pointer"},
      {with(Obs(FieldType::kBool, {}, "/a~2")), "a JSON pointer"},
      {with(Obs(FieldType::kBool, {}, "/\xff")), "UTF-8"},
      {with(Obs(FieldType::kBool, {}, std::string("/a\0b", 4))), "zeros"},
      {with(Obs(FieldType::kBool, {},
                "/" + std::string(kMaxFieldPathBytes, 'a'))),
       "191 bytes"},
      {with(Number(FieldRole::kReward, FieldType::kFloat64)), "twice"},
      {replaced(3, Number(FieldRole::kReward, FieldType::kFloat32)),
       "field reward ''"},
      {replaced(3, {.role = FieldRole::kReward,
                    .type = FieldType::kFloat64,
                    .shape = {1}}),
       "field reward ''"},
      {replaced(3, {.role = FieldRole::kReward,
                    .type = FieldType::kFloat64,
                    .path = "/a"}),
       "field reward '/a'"},
      {replaced(4, Number(FieldRole::kStatus, FieldType::kInt8)), "status"},
      {replaced(5, Number(FieldRole::kEpisodeReturn, FieldType::kFloat32)),
       "episode_return"},
      {replaced(6, Number(FieldRole::kEpisodeLength, FieldType::kInt32)),
       "episode_length"},
      {too_many, "the number of fields"},
      {too_large, "expected a region of at most"},
  };
  for (const auto& [spec, text] : kWrong) {
    const absl::Status status = PlanRegion(spec, 1).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << text;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  }
}

TEST(FieldPlan, AcceptsTheLargestFieldsAndPaths) {
  RegionSpec spec = TypedSpec();
  spec.num_envs = 1;
  spec.fields.push_back(Obs(FieldType::kBool, {kMaxFieldDim}, "/largest"));
  spec.fields.push_back(
      Obs(FieldType::kBool, std::vector<uint32_t>(8, 1), "/\xc3\xa4/~0~1"));
  spec.fields.push_back(Action(FieldType::kBool, {},
                               "/" + std::string(kMaxFieldPathBytes - 1, 'a')));
  spec.fields.push_back(Action(FieldType::kBool, {}, "/"));
  EXPECT_TRUE(PlanOf(spec).Check().ok()) << PlanOf(spec).Check();
}

// The header alone: what a client checks before it reads the table.
TEST(FieldPlan, RefusesAHeaderThatLeadsToNoTable) {
  const Copy good = PlanOf(TypedSpec());
  const auto wrong = [&](uint64_t offset, uint32_t count) {
    LrbcHeader header = good.header;
    header.fields_offset = offset;
    header.field_count = count;
    return CodeOf(CheckHeader(header, header.region_size));
  };
  const uint64_t offset = good.header.fields_offset;
  const uint64_t size = good.header.region_size;
  EXPECT_EQ(wrong(offset, good.header.field_count), ErrorCode::kOk);
  for (const auto& [at, count] : std::vector<std::pair<uint64_t, uint32_t>>{
           {offset, 0},
           {offset, kMaxFields + 1},
           {offset, ~uint32_t{0}},
           {offset, kMaxFields},  // beyond the file
           {offset + 8, 9},
           {0, 9},
           {size, 9},
           {size - 128, 9},
           {~uint64_t{0} - 127, 9},
           {good.header.rewards_offset, 9}}) {
    EXPECT_EQ(wrong(at, count), ErrorCode::kLayoutMismatch)
        << at << " " << count;
  }
}

TEST(FieldPlan, RefusesLyingTables) {
  const Copy typed = PlanOf(TypedSpec());
  const Copy rows = PlanOf(RowsSpec());
  struct Lie {
    const Copy& truth;
    const char* text;
    std::function<void(Copy*)> apply;
  };
  const Lie kLies[] = {
      {typed, "field obs '/image' (",
       [](Copy* copy) { copy->fields[0].offset += 8; }},
      {typed, "field obs '/image' (",
       [](Copy* copy) { copy->fields[0].offset = copy->header.region_size; }},
      {typed, "field obs '/image' (",
       [](Copy* copy) { copy->fields[0].offset = ~uint64_t{0} - 127; }},
      {typed, "field obs '/image' (",
       [](Copy* copy) { copy->fields[0].offset = 0; }},
      {typed, "behind the end of",
       [](Copy* copy) {
         copy->fields[0].offset = copy->header.rewards_offset;
       }},
      {typed, "behind the end of",
       [](Copy* copy) { copy->fields[0].offset = copy->header.fields_offset; }},
      {typed, "behind the end of",
       [](Copy* copy) { copy->fields[1].offset = copy->fields[0].offset; }},
      {typed, "field episode_length '' (",
       [](Copy* copy) {
         copy->fields.back().offset = copy->header.region_size - 16;
       }},
      {typed, "the role of field 0",
       [](Copy* copy) { copy->fields[0].role = static_cast<FieldRole>(8); }},
      {typed, "the type of field obs '/image'",
       [](Copy* copy) { copy->fields[0].type = static_cast<FieldType>(99); }},
      {typed, "the dimensions of field obs '/image'",
       [](Copy* copy) { copy->fields[0].dims = 9; }},
      {typed, "shape[1] of field obs '/image'",
       [](Copy* copy) { copy->fields[0].shape[1] = 0; }},
      {typed, "shape[0] of field obs '/image'",
       [](Copy* copy) { copy->fields[0].shape[0] = ~uint32_t{0}; }},
      {typed, "shape[7] of field obs '/image'",
       [](Copy* copy) { copy->fields[0].shape[7] = 1; }},
      {typed, "the values of field obs '/image'",
       [](Copy* copy) {
         copy->fields[0].shape[0] = 1u << 24;
         copy->fields[0].shape[1] = 1u << 24;
         copy->fields[0].shape[2] = 1u << 24;
       }},
      {typed, "zeros",
       [](Copy* copy) {
         std::memset(copy->fields[0].path, 'a', sizeof(FieldRecord::path));
       }},
      {typed, "zeros", [](Copy* copy) { copy->fields[0].path[191] = 'a'; }},
      {typed, "UTF-8", [](Copy* copy) { SetPath(&copy->fields[0], "/\xc3"); }},
      {typed, "JSON pointer",
       [](Copy* copy) { SetPath(&copy->fields[0], "image"); }},
      {typed, "to have a field final_obs",
       [](Copy* copy) { SetPath(&copy->fields[1], "/imagf"); }},
      {typed, "to have a field final_obs",
       [](Copy* copy) { copy->fields[1].type = FieldType::kInt8; }},
      {typed, "to have a field final_obs",
       [](Copy* copy) { copy->fields.erase(copy->fields.begin() + 1); }},
      {typed, "to have a field obs",
       [](Copy* copy) { copy->fields.erase(copy->fields.begin()); }},
      {typed, "the role action",
       [](Copy* copy) { copy->fields.erase(copy->fields.begin() + 4); }},
      {typed, "once, found it twice",
       [](Copy* copy) { copy->fields[5] = copy->fields[6]; }},
      {typed, "field reward ''",
       [](Copy* copy) { copy->fields[5].type = FieldType::kFloat32; }},
      {rows, "field obs ''",
       [](Copy* copy) { copy->fields[0].offset = copy->fields[4].offset; }},
      {rows, "field obs ''", [](Copy* copy) { copy->fields[0].shape[0] = 18; }},
      {rows, "field final_obs ''",
       [](Copy* copy) { copy->fields[1].offset = copy->header.obs_offset; }},
      {rows, "field action '/a'",
       [](Copy* copy) { SetPath(&copy->fields[2], "/a"); }},
      {rows, "the role action",
       [](Copy* copy) { copy->fields.erase(copy->fields.begin() + 2); }},
      {rows, "field action ''",
       [](Copy* copy) { copy->fields[2].type = FieldType::kInt32; }},
  };
  for (const Lie& lie : kLies) {
    Copy copy = lie.truth;
    lie.apply(&copy);
    copy.Seal();
    const absl::Status status = copy.Check();
    EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch) << lie.text;
    EXPECT_TRUE(absl::StrContains(status.message(), lie.text))
        << lie.text << ": " << status;
  }
}

TEST(FieldPlan, FindsEachFlippedByteOfATable) {
  Copy copy = PlanOf(RowsSpec());
  auto* const bytes = reinterpret_cast<uint8_t*>(copy.fields.data());
  for (size_t at = 0; at < copy.fields.size() * sizeof(FieldRecord); ++at) {
    bytes[at] = static_cast<uint8_t>(bytes[at] ^ 0x40);
    const absl::Status status = copy.Check();
    EXPECT_TRUE(absl::StrContains(status.message(), "fields_crc32")) << at;
    bytes[at] = static_cast<uint8_t>(bytes[at] ^ 0x40);
  }
  for (uint32_t* word : {&copy.header.field_count, &copy.header.fields_crc32}) {
    *word ^= 1;
    EXPECT_EQ(CodeOf(copy.Check()), ErrorCode::kLayoutMismatch);
    *word ^= 1;
  }
  EXPECT_TRUE(copy.Check().ok());
}

TEST(FieldPlan, ALargeLyingTableHasFewProblems) {
  Copy copy = PlanOf(TypedSpec());
  FieldRecord wrong = copy.fields[0];
  wrong.dims = 9;
  copy.fields.assign(kMaxFields, wrong);
  copy.header.region_size = uint64_t{64} << 20;  // the table fits
  copy.Seal();
  const HeaderFindings found = ExamineHeader(
      copy.header, copy.header.region_size, {.fields = copy.fields});
  EXPECT_GT(found.problems.size(), 2u);
  EXPECT_LE(found.problems.size(), 64u);
  EXPECT_TRUE(found.fields.empty());
}

TEST(FieldPlan, SectionsIncludeTheTableAndItsArrays) {
  const Copy plan = PlanOf(TypedSpec());
  const HeaderFindings found = ExamineHeader(
      plan.header, plan.header.region_size, {.fields = plan.fields});
  EXPECT_TRUE(found.problems.empty());
  EXPECT_EQ(found.fields.size(), plan.fields.size());
  const auto section = [&](absl::string_view name) {
    for (const RegionSection& each : found.sections) {
      if (each.name == name) return each;
    }
    return RegionSection{"none", 0, 0};
  };
  EXPECT_EQ(section("table of fields").bytes, 9u * sizeof(FieldRecord));
  EXPECT_EQ(section("field obs '/image'").bytes, 3u * 8 * 6 * 3);
  EXPECT_EQ(section("field action ''").offset, plan.fields[4].offset);
  EXPECT_EQ(section("obs").bytes, 0u);
}

TEST(FieldPlan, ARestartedEngineMustHaveTheSameFields) {
  const LrbcHeader before = PlanOf(TypedSpec()).header;
  EXPECT_TRUE(CheckSameSchema(before, PlanOf(TypedSpec()).header).ok());
  RegionSpec other_path = TypedSpec();
  other_path.fields[0].path = "/imagf";
  RegionSpec other_type = TypedSpec();
  other_type.fields[0].type = FieldType::kInt8;
  RegionSpec one_more = TypedSpec();
  one_more.fields.push_back(Action(FieldType::kBool, {}, "/a"));
  RegionSpec none = RowsSpec();
  none.fields.clear();
  for (const RegionSpec& spec :
       {other_path, other_type, one_more, RowsSpec(), none}) {
    const LrbcHeader after = PlanOf(spec).header;
    EXPECT_EQ(CodeOf(CheckSameSchema(before, after)),
              ErrorCode::kLayoutMismatch);
    EXPECT_EQ(CodeOf(CheckSameSchema(after, before)),
              ErrorCode::kLayoutMismatch);
  }
}

// A simple second implementation of the guarantee: every byte of every array is
// in the file, and in no other part of it.
void ExpectArraysApart(const Copy& copy) {
  const LrbcHeader& header = copy.header;
  const uint64_t envs = header.num_envs;
  std::vector<std::pair<uint64_t, uint64_t>> parts = {
      {header.obs_offset, envs * header.obs_size * 4},
      {header.act_offset, envs * header.act_size * 4},
      {header.rewards_offset, envs * 4},
      {header.dones_offset, envs},
      {header.final_obs_offset, envs * header.obs_size * 4},
      {header.cmd_s2c_offset, 128 + header.cmd_ring_size},
      {header.cmd_c2s_offset, 128 + header.cmd_ring_size},
      {header.fields_offset, copy.fields.size() * 256}};
  for (const FieldRecord& field : copy.fields) {
    if (field.offset == header.obs_offset ||
        field.offset == header.final_obs_offset ||
        field.offset == header.act_offset) {
      ASSERT_EQ(field.type, FieldType::kFloat32);
      continue;
    }
    uint64_t bytes = envs * ElementBytes(field.type);
    for (uint32_t i = 0; i < field.dims; ++i) bytes *= field.shape[i];
    ASSERT_GT(bytes, 0u);
    ASSERT_EQ(field.offset % 64, 0u);
    parts.push_back({field.offset, bytes});
  }
  std::vector<bool> taken(header.region_size, false);
  for (const auto& [offset, bytes] : parts) {
    ASSERT_GE(offset, 4096u);
    ASSERT_LE(offset + bytes, header.region_size);
    for (uint64_t at = offset; at < offset + bytes; ++at) {
      ASSERT_FALSE(taken[at]);
      taken[at] = true;
    }
  }
}

// Small changes with recomputed checksums: a table that passes must still be
// safe to use.
TEST(FieldPlan, AcceptedTablesAreSafeToUse) {
  std::mt19937 random(13);
  const auto up_to = [&](size_t most) {
    return std::uniform_int_distribution<size_t>(0, most)(random);
  };
  int passed = 0;
  constexpr int kRuns = 20'000;
  const Copy kGood[] = {PlanOf(TypedSpec()), PlanOf(RowsSpec())};
  for (const Copy& good : kGood) ExpectArraysApart(good);
  for (int run = 0; run < kRuns; ++run) {
    Copy copy = kGood[run % 2];
    const size_t changes = 1 + up_to(2);
    for (size_t i = 0; i < changes; ++i) {
      FieldRecord& field = copy.fields[up_to(copy.fields.size() - 1)];
      auto* const bytes = reinterpret_cast<uint8_t*>(&field);
      // Offset to shape; or the offset of another array, nearly.
      if (up_to(1) == 0) {
        bytes[up_to(47)] = static_cast<uint8_t>(up_to(7) << (run % 3 * 2));
      } else {
        field.offset =
            copy.fields[up_to(copy.fields.size() - 1)].offset + 64 * up_to(3);
      }
    }
    copy.Seal();
    const absl::Status status = copy.Check();
    if (status.ok()) {
      ++passed;
      ExpectArraysApart(copy);
    } else {
      EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch);
    }
  }
  EXPECT_GT(passed, kRuns / 200);
  EXPECT_LT(passed, kRuns);
}

}  // namespace
}  // namespace tandem
