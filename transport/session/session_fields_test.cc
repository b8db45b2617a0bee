// Exchanges of fields, between both ends of the protocol in one process.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/layout/field.h"
#include "transport/client_side.h"
#include "transport/memory/region_plan.h"
#include "transport/session/testing/echo_engine.h"
#include "transport/step_arrays.h"

namespace tandem {
namespace {

FieldSpec Field(FieldRole role, FieldType type, std::vector<uint32_t> shape,
                std::string path) {
  return {.role = role,
          .type = type,
          .shape = std::move(shape),
          .path = std::move(path)};
}

// Actions and observations without float32 rows; the engine echoes both.
RegionSpec FieldsSpec() {
  RegionSpec spec = EchoSpec();
  spec.obs_size = 0;
  spec.act_size = 0;
  for (const FieldRole role : {FieldRole::kObs, FieldRole::kAction}) {
    spec.fields.push_back(Field(role, FieldType::kUint8, {4, 2}, "/image"));
    spec.fields.push_back(Field(role, FieldType::kInt64, {}, "/count"));
  }
  spec.fields.push_back(Field(FieldRole::kStatus, FieldType::kUint8, {}, ""));
  return spec;
}

using SessionFields = SessionTest;

TEST_F(SessionFields, AnExchangeMovesFieldsWithoutFloat32Rows) {
  EchoEngine engine(name_, FieldsSpec());
  ClientSide client = AttachOrFail(name_);
  const StepArrays& arrays = client.arrays();
  EXPECT_TRUE(arrays.obs.empty());
  EXPECT_TRUE(arrays.final_obs.empty());
  EXPECT_TRUE(arrays.actions.empty());
  ASSERT_EQ(arrays.fields.size(), 7u);
  const FieldArray* const image = arrays.Find(FieldRole::kObs, "/image");
  const FieldArray* const count = arrays.Find(FieldRole::kObs, "/count");
  const FieldArray* const act_image = arrays.Find(FieldRole::kAction, "/image");
  const FieldArray* const act_count = arrays.Find(FieldRole::kAction, "/count");
  ASSERT_TRUE(image && count && act_image && act_count);
  EXPECT_EQ(image->shape, (std::vector<uint32_t>{4, 2}));
  EXPECT_EQ(image->row_bytes, 8u);
  EXPECT_EQ(image->data.size(), 3u * 8);
  EXPECT_EQ(count->shape, std::vector<uint32_t>());
  EXPECT_EQ(count->Values<int64_t>().size(), 3u);
  for (int64_t i = 1; i <= 100; ++i) {
    act_count->Values<int64_t>()[1] = -i;
    act_image->Row(2)[7] = std::byte{static_cast<uint8_t>(i)};
    ASSERT_EQ(Step(client, {}), ErrorCode::kOk);
    ASSERT_EQ(count->Values<int64_t>()[1], -i);
    ASSERT_EQ(image->Values<uint8_t>()[2 * 8 + 7], i);
  }
  EXPECT_EQ(engine.steps(), 100);
  EXPECT_EQ(client.SendReset(std::vector<int64_t>{1}, {}), ErrorCode::kOk);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(engine.resets(), 1);
}

TEST_F(SessionFields, RefusesFloat32ActionsWhereActionsAreFields) {
  EchoEngine engine(name_, FieldsSpec());
  ClientSide client = AttachOrFail(name_);
  EXPECT_EQ(Step(client, {1}), ErrorCode::kInvalidAction);
  const absl::Status status = client.Explain(ErrorCode::kInvalidAction);
  EXPECT_TRUE(absl::StrContains(status.message(), "fields")) << status;
  EXPECT_EQ(client.Send(client.arrays().actions), ErrorCode::kOk);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(engine.steps(), 1);
}

TEST_F(SessionFields, Float32RowsAreFieldsInTheSameMemory) {
  RegionSpec spec = EchoSpec();
  spec.fields = {Field(FieldRole::kReward, FieldType::kFloat64, {}, "")};
  EchoEngine engine(name_, spec);
  ClientSide client = AttachOrFail(name_);
  const StepArrays& arrays = client.arrays();
  const auto memory = [&](FieldRole role) -> const void* {
    const FieldArray* const field = arrays.Find(role, "");
    return field == nullptr ? nullptr : field->data.data();
  };
  EXPECT_EQ(memory(FieldRole::kObs), arrays.obs.data());
  EXPECT_EQ(memory(FieldRole::kFinalObs), arrays.final_obs.data());
  EXPECT_EQ(memory(FieldRole::kAction), arrays.actions.data());
  EXPECT_NE(memory(FieldRole::kReward), nullptr);
  EXPECT_EQ(memory(FieldRole::kStatus), nullptr);
  EXPECT_EQ(arrays.Find(FieldRole::kObs, "/image"), nullptr);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(arrays.Find(FieldRole::kObs, "")->Values<float>()[5], 6);
}

TEST_F(SessionFields, ReconnectNeedsTheSameFields) {
  auto engine = std::make_unique<EchoEngine>(name_, FieldsSpec());
  ClientSide client = AttachOrFail(name_);
  engine.reset();
  engine = std::make_unique<EchoEngine>(name_, FieldsSpec());
  ASSERT_TRUE(client.Reconnect(20).ok());
  client.arrays().Find(FieldRole::kAction, "/count")->Values<int64_t>()[0] = 9;
  EXPECT_EQ(Step(client, {}), ErrorCode::kOk);
  EXPECT_EQ(
      client.arrays().Find(FieldRole::kObs, "/count")->Values<int64_t>()[0], 9);
  engine.reset();
  RegionSpec other = FieldsSpec();
  other.fields[0].path = other.fields[2].path = "/pixels";
  engine = std::make_unique<EchoEngine>(name_, other);
  EXPECT_EQ(CodeOf(client.Reconnect(20)), ErrorCode::kLayoutMismatch);
}

}  // namespace
}  // namespace tandem
