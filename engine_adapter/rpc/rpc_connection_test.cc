// A caller with slots for images. rpc_dispatcher_test has a caller without, and
// the rules of calls and streams.

#include "engine_adapter/rpc/rpc_connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/rpc/rpc_dispatcher.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/frames/image_slot.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

constexpr uint32_t kRingBytes = 4096;
constexpr uint32_t kImageBytes = 100;
constexpr size_t kMostBytes = 8 * 1024;  // of an answer

// The pixels of the image with this number.
std::vector<uint8_t> PixelsOf(int number) {
  return std::vector<uint8_t>(kImageBytes, static_cast<uint8_t>(number));
}

ImageNotice NoticeOf(const rpc::ImageFrameT& frame) {
  return {.seq = frame.slot_seq, .bytes = frame.slot_bytes, .slot = frame.slot};
}

bool Holds(const ImageLease& lease, int number) {
  return lease.bytes().size() == kImageBytes && lease.IsIntact() &&
         std::ranges::all_of(lease.bytes(), [&](std::byte byte) {
           return byte == static_cast<std::byte>(number);
         });
}

// A dispatcher whose images are numbered from 1, and a client at the rings'
// other ends.
class RpcConnectionTest : public testing::Test {
 protected:
  RpcConnectionTest() {
    dispatcher_.ServeLater<rpc::GetCameraFrameRequestT, rpc::NamedImageFrameT>(
        rpc::MethodId::GetCameraFrame,
        [this](const rpc::GetCameraFrameRequestT&,
               RpcAnswer<rpc::NamedImageFrameT> answer) {
          rpc::NamedImageFrameT response;
          response.name = name_;
          response.frame = std::make_unique<rpc::ImageFrameT>(NextImage());
          answer(std::move(response));
        });
    dispatcher_.ServeStream<rpc::StartViewportStreamRequestT>(
        rpc::MethodId::StreamViewport,
        [this](const rpc::StartViewportStreamRequestT&) {
          return absl::StatusOr<RpcStream>(
              RpcStream{.hz = 0, .next = [this] { return NextItems(); }});
        });
    connection_.Begin(EnvelopeReader(to_engine_.Reader(), {}),
                      EnvelopeWriter(to_client_.Writer(), kMostBytes));
  }

  rpc::ImageFrameT NextImage() {
    rpc::ImageFrameT frame;
    frame.data = PixelsOf(++images_);
    return frame;
  }
  absl::StatusOr<std::vector<rpc::PayloadUnion>> NextItems() {
    std::vector<rpc::PayloadUnion> items(1);
    items[0].Set(NextImage());
    return items;
  }

  template <typename Request>
  void Call(rpc::MethodId method, bool to_slot) {
    Request request;
    request.to_slot = to_slot;
    rpc::EnvelopeT call;
    call.method = method;
    call.correlation_id = 1;
    call.payload.Set(std::move(request));
    ASSERT_EQ(calls_.Post(call), ErrorCode::kOk);
  }
  // Returns the message that the connection sends at this time.
  rpc::EnvelopeT Answer(int64_t now_ns = 0) {
    (void)connection_.Poll(now_ns);
    rpc::EnvelopeT answer;
    const EnvelopeReader::Got got = answers_.Next();
    EXPECT_EQ(got, EnvelopeReader::Got::kEnvelope);
    if (got == EnvelopeReader::Got::kEnvelope) {
      answers_.envelope().UnPackTo(&answer);
    }
    return answer;
  }
  // Calls GetCameraFrame; returns the answer's image.
  rpc::ImageFrameT Frame(bool to_slot) {
    Call<rpc::GetCameraFrameRequestT>(rpc::MethodId::GetCameraFrame, to_slot);
    const rpc::EnvelopeT answer = Answer();
    const rpc::NamedImageFrameT* const named =
        answer.payload.AsNamedImageFrame();
    EXPECT_NE(named, nullptr) << answer.error_message;
    return named == nullptr ? rpc::ImageFrameT() : *named->frame;
  }

  EngineSide side_ = EngineSide::Create(UniqueRegionName("rpc_connection"),
                                        {.num_envs = 1,
                                         .obs_size = 1,
                                         .act_size = 1,
                                         .task = "images",
                                         .image_slot_bytes = kImageBytes},
                                        {})
                         .value();
  const ImagePlace place_ =
      ImagePlace::Of(side_.mapping(), *side_.mapping()->header(), 0);
  TestRegion to_engine_{kRingBytes};
  TestRegion to_client_{kRingBytes};
  int images_ = 0;
  std::string name_;
  RpcDispatcher dispatcher_;
  RpcConnection connection_{&dispatcher_, RpcConnection::Limits(),
                            RpcConnection::Admission(),
                            ImageSlotWriter(place_)};
  EnvelopeWriter calls_{to_engine_.Writer()};
  EnvelopeReader answers_{to_client_.Reader(), {}};
};

TEST_F(RpcConnectionTest, AnImageComesInASlot) {
  const rpc::ImageFrameT frame = Frame(/*to_slot=*/true);
  EXPECT_TRUE(frame.data.empty());
  const ImageLease lease = LeaseOf(place_, NoticeOf(frame));
  ASSERT_TRUE(lease);
  EXPECT_TRUE(Holds(lease, 1));
}

TEST_F(RpcConnectionTest, ACallerThatCannotReadSlotsGetsTheImageInData) {
  const rpc::ImageFrameT frame = Frame(/*to_slot=*/false);
  EXPECT_EQ(frame.slot_seq, 0u);
  EXPECT_EQ(frame.data, PixelsOf(1));
}

TEST_F(RpcConnectionTest, WhileBothSlotsAreHeldImagesComeInData) {
  std::optional<ImageLease> first(LeaseOf(place_, NoticeOf(Frame(true))));
  const ImageLease second = LeaseOf(place_, NoticeOf(Frame(true)));
  const rpc::ImageFrameT third = Frame(true);
  EXPECT_EQ(third.slot_seq, 0u);
  EXPECT_EQ(third.data, PixelsOf(3));
  ASSERT_TRUE(*first && second);
  EXPECT_TRUE(Holds(*first, 1) && Holds(second, 2));
  first.reset();
  const ImageLease fourth = LeaseOf(place_, NoticeOf(Frame(true)));
  ASSERT_TRUE(fourth);
  EXPECT_TRUE(Holds(fourth, 4) && Holds(second, 2));
}

TEST_F(RpcConnectionTest, ImagesOfAStreamComeInSlots) {
  Call<rpc::StartViewportStreamRequestT>(rpc::MethodId::StreamViewport, true);
  for (int number = 1; number <= 3; ++number) {
    const rpc::EnvelopeT item = Answer(int64_t{number} * 1'000'000'000);
    const rpc::ImageFrameT* const frame = item.payload.AsImageFrame();
    ASSERT_NE(frame, nullptr) << item.error_message;
    const ImageLease lease = LeaseOf(place_, NoticeOf(*frame));
    ASSERT_TRUE(lease);
    EXPECT_TRUE(Holds(lease, number));
  }
}

TEST_F(RpcConnectionTest, AnAnswerThatIsTooLargeLeavesItsSlotFree) {
  name_.assign(2 * kMostBytes, 'n');
  for (int i = 0; i < 2; ++i) {
    Call<rpc::GetCameraFrameRequestT>(rpc::MethodId::GetCameraFrame, true);
    EXPECT_EQ(Answer().error_code,
              static_cast<uint16_t>(ErrorCode::kMessageTooLarge));
  }
  name_.clear();
  const ImageLease first = LeaseOf(place_, NoticeOf(Frame(true)));
  const ImageLease second = LeaseOf(place_, NoticeOf(Frame(true)));
  EXPECT_TRUE(first && second);
}

}  // namespace
}  // namespace tandem
