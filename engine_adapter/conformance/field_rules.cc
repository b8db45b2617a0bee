// Fields: arrays of other types and shapes than float32 rows.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "engine_adapter/conformance/engine_rule.h"
#include "schema/layout/field.h"
#include "transport/memory/region_plan.h"
#include "transport/step_arrays.h"

namespace tandem {
namespace {

using Fields = RulesFor<Capability::kFields>;

TEST_F(Fields, FieldsAreAlignedAndObservationsHaveAFinalOne) {
  Begin();
  for (const FieldArray& field : arrays().fields) {
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(field.data.data()) % kPromisedAlignment, 0u)
        << field.path;
    EXPECT_EQ(field.data.size(), size_t{kEnvs} * field.row_bytes);
    if (field.role != FieldRole::kObs) continue;
    const FieldArray* const last =
        arrays().Find(FieldRole::kFinalObs, field.path);
    ASSERT_NE(last, nullptr) << field.path;
    EXPECT_EQ(last->type, field.type);
    EXPECT_EQ(last->shape, field.shape);
  }
}

TEST_F(Fields, RewardsAreTheRoundedFieldOfRewards) {
  Begin();
  const FieldArray* const field = arrays().Find(FieldRole::kReward, "");
  if (field == nullptr) GTEST_SKIP() << "engine without a field of rewards";
  ASSERT_EQ(field->type, FieldType::kFloat64);
  for (size_t step = 0; step < 10; ++step) {
    Step(step);
    for (uint32_t env = 0; env < kEnvs; ++env) {
      EXPECT_EQ(arrays().rewards[env],
                static_cast<float>(field->Values<double>()[env]))
          << "environment " << env;
    }
  }
}

TEST_F(Fields, EnvironmentsAreOkAfterAStepAndAReset) {
  Begin();
  const FieldArray* const field = arrays().Find(FieldRole::kStatus, "");
  if (field == nullptr) GTEST_SKIP() << "engine without a field of states";
  const Flags ok(kEnvs, static_cast<uint8_t>(EnvStatus::kOk));
  Step();
  EXPECT_EQ(Copy(field->Values<uint8_t>()), ok);
  Reset({0, 1, 2}, 1);
  EXPECT_EQ(Copy(field->Values<uint8_t>()), ok);
}

}  // namespace
}  // namespace tandem
