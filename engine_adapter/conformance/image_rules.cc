// Images: those in the observations. Cameras: those that callers request by
// RPC.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_facts.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/rpc_client.h"

namespace tandem {
namespace {

constexpr size_t kImageBytes = size_t{kImageWidth} * kImageHeight * 3;

class Images : public RulesFor<Capability::kImages> {
 protected:
  void Serve() {
    if (EngineFacts::Get().own_images) {
      engine_.Start();
    } else {
      engine_.Start({kImagesFlag});
    }
    Attach();
  }
  std::vector<uint8_t> ImageOf(size_t env) {
    const size_t bytes = arrays().images.size() / kEnvs;
    return Copy(arrays().images.subspan(env * bytes, bytes));
  }
};

TEST_F(Images, EveryEnvironmentHasAnImageOfTheRequestedSize) {
  Serve();
  const LrbcHeader plan = engine_.client->plan();
  if (!EngineFacts::Get().own_images) {
    EXPECT_EQ(plan.image_width, kImageWidth);
    EXPECT_EQ(plan.image_height, kImageHeight);
  }
  EXPECT_EQ(plan.image_channels, 3);
  EXPECT_EQ(arrays().images.size(),
            size_t{kEnvs} * plan.image_width * plan.image_height * 3);
}

TEST_F(Images, ImagesAreOfTheNewestExchange) {
  Serve();
  EXPECT_EQ(engine_.client->image_step(), frame_seq());
  for (int step = 0; step < 5; ++step) {
    Step();
    EXPECT_EQ(engine_.client->image_step(), frame_seq());
    Reset({1}, 3);
    EXPECT_EQ(engine_.client->image_step(), frame_seq());
  }
}

TEST_F(Images, TheSameSeedGivesTheSameImages) {
  Serve();
  const auto images = [&] {
    std::vector<std::vector<uint8_t>> all;
    Reset({0, 1, 2}, 5);
    for (size_t step = 0; step < 10; ++step) {
      all.push_back(Copy(arrays().images));
      Step(step);
    }
    return all;
  };
  const auto first = images();
  EXPECT_TRUE(images() == first)
      << "the images of two equal trajectories differ";
}

TEST_F(Images, AResetLeavesTheImagesOfOtherEnvironments) {
  Serve();
  for (size_t step = 0; step < 10; ++step) Step(step);
  const std::vector<std::vector<uint8_t>> before = {ImageOf(0), ImageOf(2)};
  Reset({1}, std::nullopt);
  EXPECT_TRUE(ImageOf(0) == before[0]);
  EXPECT_TRUE(ImageOf(2) == before[1]);
}

class Cameras : public RulesFor<Capability::kCamera> {
 protected:
  std::vector<std::string> Names() {
    const auto listed = Answer<rpc::ListCamerasResponseT>(
        rpc::MethodId::ListCameras, rpc::ListCamerasRequestT());
    std::vector<std::string> names;
    std::set<uint64_t> ids;
    for (const auto& camera : listed.cameras) {
      names.push_back(camera->name);
      EXPECT_TRUE(camera->id != 0 && ids.insert(camera->id).second)
          << camera->name << " has the id " << camera->id;
    }
    return names;
  }
  static rpc::GetCameraFrameRequestT Request(const std::string& name) {
    rpc::GetCameraFrameRequestT request;
    request.name = name;
    request.width = kImageWidth;
    request.height = kImageHeight;
    request.format = "raw";
    request.env_id = 1;
    return request;
  }
  // Why this machine or this engine draws no images; "": it draws them.
  std::string WhyNot() {
    const std::vector<std::string> names = Names();
    if (names.empty()) return "engine without cameras in its model";
    const absl::Status drawn =
        engine_.Call(rpc::MethodId::GetCameraFrame, Request(names[0])).status();
    return CodeOf(drawn) == ErrorCode::kUnsupported
               ? "engine without images: " + std::string(drawn.message())
               : "";
  }
};

TEST_F(Cameras, EachDrawsTheRequestedSizeOfTheNewestState) {
  Begin();
  const std::string why_not = WhyNot();
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  for (const std::string& name : Names()) {
    Step();
    const auto image = Answer<rpc::NamedImageFrameT>(
        rpc::MethodId::GetCameraFrame, Request(name));
    EXPECT_EQ(image.name, name);
    ASSERT_NE(image.frame, nullptr);
    EXPECT_EQ(image.frame->width, kImageWidth);
    EXPECT_EQ(image.frame->height, kImageHeight);
    EXPECT_EQ(image.frame->data.size(),
              size_t{kImageWidth} * kImageHeight * image.frame->channels);
    EXPECT_EQ(image.frame->env_id, 1);
    EXPECT_EQ(image.frame->frame_seq, frame_seq());
  }
}

TEST_F(Cameras, AnImageInASlotIsTheOneInTheAnswer) {
  engine_.Start({absl::StrCat("--image_slot_bytes=", 4 * kImageBytes)});
  Attach();
  const std::string why_not = WhyNot();
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  rpc::GetCameraFrameRequestT request = Request(Names()[0]);
  const std::vector<uint8_t> sent =
      Answer<rpc::NamedImageFrameT>(rpc::MethodId::GetCameraFrame, request)
          .frame->data;
  request.to_slot = true;
  for (int image = 0; image < 10; ++image) {
    absl::StatusOr<RpcMessage> answer =
        engine_.Call(rpc::MethodId::GetCameraFrame, request);
    Require(answer.status());
    const ImageLease lease = answer->TakeImage();
    ASSERT_TRUE(lease) << "expected the image in a slot";
    const auto* const first =
        reinterpret_cast<const uint8_t*>(lease.bytes().data());
    EXPECT_TRUE(std::vector<uint8_t>(first, first + lease.bytes().size()) ==
                sent);
    EXPECT_TRUE(lease.IsIntact());
  }
}

TEST_F(Cameras, UnknownNamesAndEnvironmentsAreRefused) {
  Begin();
  EXPECT_EQ(
      CodeOf(
          engine_.Call(rpc::MethodId::GetCameraFrame, Request("no such camera"))
              .status()),
      ErrorCode::kInvalidArgument);
  for (const std::string& name : Names()) {
    rpc::GetCameraFrameRequestT request = Request(name);
    request.env_id = kEnvs;
    EXPECT_EQ(
        CodeOf(engine_.Call(rpc::MethodId::GetCameraFrame, request).status()),
        ErrorCode::kInvalidArgument);
  }
  Step();
}

}  // namespace
}  // namespace tandem
