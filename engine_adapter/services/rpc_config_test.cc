#include "engine_adapter/rpc_config.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

TEST(RpcConfig, AtFirstEverythingIsServed) {
  const RpcConfig config;
  for (const RpcConfig::OfService& service : config.services) {
    EXPECT_TRUE(service.enabled);
    EXPECT_EQ(service.stream_hz, 60);
  }
}

TEST(RpcConfig, ServicesAreThoseThatAreNamed) {
  RpcConfig config;
  ASSERT_TRUE(ParseServices("scene,agent", &config).ok());
  EXPECT_TRUE(config[Service::kAgent].enabled);
  EXPECT_TRUE(config[Service::kScene].enabled);
  EXPECT_FALSE(config[Service::kDebug].enabled);
  ASSERT_TRUE(ParseServices("none", &config).ok());
  EXPECT_FALSE(config[Service::kAgent].enabled);
  ASSERT_TRUE(ParseServices("all", &config).ok());
  EXPECT_TRUE(config[Service::kDebug].enabled);
}

TEST(RpcConfig, RatesAreThoseThatAreGiven) {
  RpcConfig config;
  ASSERT_TRUE(ParseStreamRates("", &config).ok());
  ASSERT_TRUE(ParseStreamRates("camera=7.5,telemetry=1000", &config).ok());
  EXPECT_EQ(config[Service::kCamera].stream_hz, 7.5);
  EXPECT_EQ(config[Service::kTelemetry].stream_hz, 1000);
  EXPECT_EQ(config[Service::kViewport].stream_hz, 60);
  ASSERT_TRUE(
      ParseStreamRates(R"({"camera": 30, "viewport": 0.5})", &config).ok());
  EXPECT_EQ(config[Service::kCamera].stream_hz, 30);
  EXPECT_EQ(config[Service::kViewport].stream_hz, 0.5);
  EXPECT_EQ(config[Service::kTelemetry].stream_hz, 1000);
  ASSERT_TRUE(ParseStreamRates("{}", &config).ok());
}

TEST(RpcConfig, RingsAreAPowerOfTwoOfKib) {
  EXPECT_EQ(RpcRingBytes(4, "kib").value(), 4096u);
  EXPECT_EQ(RpcRingBytes(1 << 20, "kib").value(), 1u << 30);
  for (const uint32_t kib : {0U, 2U, 5U, 1U << 21, ~0U}) {
    const absl::Status status = RpcRingBytes(kib, "options->kib").status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << kib;
    EXPECT_TRUE(absl::StartsWith(status.message(), "options->kib: expected a"))
        << status;
  }
}

TEST(RpcConfig, RefusesInvalidValuesWithoutChange) {
  RpcConfig config;
  for (const absl::string_view text :
       {"agents", "agent,", "", "all,agent", "AGENT"}) {
    const absl::Status status = ParseServices(text, &config);
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << text;
    EXPECT_TRUE(absl::StrContains(status.message(), "viewport"));
    EXPECT_TRUE(absl::StartsWith(status.message(), "--services: "));
  }
  for (const absl::string_view text :
       {"camera", "camera=", "camera=0", "camera=1e-12", "camera=-1",
        "camera=1001", "camera=nan", "camera=10,lidar=10", "agent=5",
        R"({"camera": 10, "agent": 5})", R"({"camera": "10"})",
        R"({"camera": [10]})", R"({"camera": 0})", R"({"camera": 10)"}) {
    const absl::Status status = ParseStreamRates(text, &config);
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << text;
    EXPECT_TRUE(absl::StartsWith(status.message(), "--stream_hz: "));
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "(mujoco, telemetry, camera, viewport)"))
        << status;
  }
  EXPECT_TRUE(config[Service::kAgent].enabled);
  EXPECT_EQ(config[Service::kCamera].stream_hz, 60);
}

}  // namespace
}  // namespace tandem
