#include "gateway/rpc_table.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/camera.pb.h"
#include "schema/protos/hazel/debug.pb.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "schema/protos/hazel/mujoco_scene.pb.h"
#include "schema/protos/hazel/scene.pb.h"
#include "schema/protos/hazel/telemetry.pb.h"
#include "schema/protos/hazel/viewport.pb.h"

namespace tandem::gateway {
namespace {

std::string TextOf(absl::string_view service, absl::string_view rpc,
                   bool streams) {
  return absl::StrCat(service, "/", rpc, streams ? " stream" : "");
}

TEST(RpcTable, HasEveryRpcOfTheProtosOnce) {
  namespace pb = hazel::rpc;
  const google::protobuf::FileDescriptor* const files[] = {
      pb::StepRequest::descriptor()->file(),
      pb::JointState::descriptor()->file(),
      pb::FullState::descriptor()->file(),
      pb::TelemetryFrame::descriptor()->file(),
      pb::EntityInfo::descriptor()->file(),
      pb::CameraInfo::descriptor()->file(),
      pb::ViewportStreamConfig::descriptor()->file(),
      pb::DebugDrawRequest::descriptor()->file()};
  std::multiset<std::string> expected;
  for (const auto* const file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      const auto* const service = file->service(i);
      for (int j = 0; j < service->method_count(); ++j) {
        const auto* const method = service->method(j);
        expected.insert(TextOf(service->name(), method->name(),
                               method->server_streaming()));
      }
    }
  }
  std::multiset<std::string> found;
  for (const RpcRow& row : AllRpcs()) {
    found.insert(TextOf(row.service, row.rpc, row.streams));
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.size(), 37U + 3U);  // those of 0.5.0, and of 0.1.84 only
}

}  // namespace
}  // namespace tandem::gateway
