#include "sdk/call_result.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "schema/layout/error_codes.h"
#include "sdk/tandem.h"

namespace tandem {
namespace {

TEST(CallResult, CodesAreThoseOfTheTable) {
#define TANDEM_CHECK(number, name, absl_code, python_class, meaning) \
  EXPECT_STREQ(tandem_code_name(number), &#name[1]);
  TANDEM_ERROR_TABLE(TANDEM_CHECK)
#undef TANDEM_CHECK
  EXPECT_STREQ(tandem_code_name(-1), "unknown");
  EXPECT_STREQ(tandem_code_name(TANDEM_SYSTEM_CALL_FAILED), "SystemCallFailed");
  EXPECT_STREQ(tandem_code_name(TANDEM_ENV_FAILED), "EnvFailed");
  EXPECT_STREQ(tandem_code_name(TANDEM_GPU_OTHER_CONTEXT + 1), "unknown");
  EXPECT_STREQ(tandem_code_name(TANDEM_STEP_PENDING), "StepPending");
  EXPECT_EQ(tandem_abi_version(), TANDEM_ABI_MAJOR << 16 | TANDEM_ABI_MINOR);
}

TEST(CallResult, StructsHaveTheSizesOfVersion1) {
  EXPECT_EQ(sizeof(tandem_array), kFirstBytes<tandem_array>);
  // Version 1.3 has appended name to contracts.
  EXPECT_EQ(offsetof(tandem_work, name), kFirstBytes<tandem_work>);
  EXPECT_EQ(sizeof(tandem_work), 88u);
  EXPECT_EQ(sizeof(tandem_callbacks), kFirstBytes<tandem_callbacks>);
  // Version 1.1 has appended stream_hz and rpc_ring_kib.
  EXPECT_EQ(offsetof(tandem_engine_options, stream_hz),
            kFirstBytes<tandem_engine_options>);
  // Version 1.3 has appended fields to frames.
  EXPECT_EQ(offsetof(tandem_engine_options, fields), 96u);
  EXPECT_EQ(sizeof(tandem_engine_options), 144u);
  // Version 1.4 has appended scene and poses.
  EXPECT_EQ(offsetof(tandem_services, scene), kFirstBytes<tandem_services>);
  // Version 1.5 has appended save_state and load_state.
  EXPECT_EQ(offsetof(tandem_services, save_state), 208u);
  EXPECT_EQ(sizeof(tandem_services), 224u);
  EXPECT_EQ(sizeof(tandem_image), kFirstBytes<tandem_image>);
  EXPECT_EQ(sizeof(tandem_frames), kFirstBytes<tandem_frames>);
  EXPECT_EQ(sizeof(tandem_gpu), kFirstBytes<tandem_gpu>);
  EXPECT_EQ(sizeof(tandem_gpu_memory), kFirstBytes<tandem_gpu_memory>);
  EXPECT_EQ(sizeof(tandem_status), kFirstBytes<tandem_status>);
  EXPECT_EQ(sizeof(tandem_server), kFirstBytes<tandem_server>);
  EXPECT_EQ(sizeof(tandem_client_options), kFirstBytes<tandem_client_options>);
  EXPECT_EQ(sizeof(tandem_attendant_options),
            kFirstBytes<tandem_attendant_options>);
}

}  // namespace
}  // namespace tandem
