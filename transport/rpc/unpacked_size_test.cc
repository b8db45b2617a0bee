#include "transport/rpc/unpacked_size.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flatbuffers/flatbuffers.h"

namespace tandem {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// The heap bytes that the result of `make` uses.
template <typename Make>
uint64_t HeapBytes(Make make) {
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return uint64_t{info.uordblks} + info.hblkhd;
  };
  const uint64_t before = in_use();
  const auto made = make();
  return in_use() - before;
}

class UnpackedSize : public testing::Test {
 protected:
  const rpc::Envelope& Pack(const rpc::EnvelopeT& envelope) {
    builder_.Clear();
    rpc::FinishEnvelopeBuffer(builder_,
                              rpc::CreateEnvelope(builder_, &envelope));
    return *rpc::GetEnvelope(builder_.GetBufferPointer());
  }
  template <typename Payload>
  const rpc::Envelope& PackPayload(rpc::Payload type, Payload payload) {
    rpc::EnvelopeBuilder envelope(builder_);
    envelope.add_payload_type(type);
    envelope.add_payload(payload.Union());
    rpc::FinishEnvelopeBuffer(builder_, envelope.Finish());
    const uint8_t* const bytes = builder_.GetBufferPointer();
    flatbuffers::Verifier verifier(bytes, builder_.GetSize());
    EXPECT_TRUE(rpc::VerifyEnvelopeBuffer(verifier));
    return *rpc::GetEnvelope(bytes);
  }
  // The smallest limit that accepts it, to a few bytes.
  static uint64_t Estimate(const rpc::Envelope& envelope) {
    uint64_t low = 0;
    uint64_t high = uint64_t{1} << 60;
    while (low + 1 < high) {
      const uint64_t middle = low + (high - low) / 2;
      (UnpacksWithin(envelope, middle) ? high : low) = middle;
    }
    return high;
  }

  flatbuffers::FlatBufferBuilder builder_;
};

TEST_F(UnpackedSize, IsAtLeastTheSizeThatUnpackingUses) {
  rpc::EnvelopeT envelope;
  envelope.error_message = std::string(10'000, 'e');
  rpc::ListEntitiesResponseT entities;
  for (int i = 0; i < 1000; ++i) {
    auto entity = std::make_unique<rpc::EntityInfoT>();
    entity->name = std::string(static_cast<size_t>(i), 'n');
    entity->components = {"body", std::string(100, 'c'), ""};
    entities.entities.push_back(std::move(entity));
  }
  envelope.payload.Set(std::move(entities));
  const rpc::Envelope& packed = Pack(envelope);
  const uint64_t taken = HeapBytes([&] {
    rpc::EnvelopeT plain;
    packed.UnPackTo(&plain);
    return plain;
  });
  EXPECT_GE(Estimate(packed), taken);
  EXPECT_LE(Estimate(packed), 4 * taken);
}

TEST_F(UnpackedSize, IsNearTheSizeOfBytes) {
  rpc::ImageFrameT frame;
  frame.data.resize(kMiB);
  rpc::EnvelopeT envelope;
  envelope.payload.Set(std::move(frame));
  const rpc::Envelope& packed = Pack(envelope);
  EXPECT_FALSE(UnpacksWithin(packed, kMiB));
  EXPECT_TRUE(UnpacksWithin(packed, kMiB + 4096));
}

TEST_F(UnpackedSize, CountsEachReferenceToAString) {
  const std::vector<flatbuffers::Offset<flatbuffers::String>> names(
      1000, builder_.CreateString(std::string(kMiB, 'n')));
  const auto all = builder_.CreateVector(names);
  rpc::GetMujocoInfoResponseBuilder response(builder_);
  response.add_joint_names(all);
  const auto payload = response.Finish();
  EXPECT_GE(Estimate(PackPayload(rpc::Payload::GetMujocoInfoResponse, payload)),
            1000 * kMiB);
}

TEST_F(UnpackedSize, CountsEachReferenceToATable) {
  const auto name = builder_.CreateString(std::string(kMiB, 'n'));
  rpc::NamedControlEntryBuilder entry(builder_);
  entry.add_actuator_name(name);
  const std::vector<flatbuffers::Offset<rpc::NamedControlEntry>> entries(
      1000, entry.Finish());
  const auto all = builder_.CreateVector(entries);
  rpc::SendControlRequestBuilder request(builder_);
  request.add_named(all);
  const auto payload = request.Finish();
  EXPECT_GE(Estimate(PackPayload(rpc::Payload::SendControlRequest, payload)),
            1000 * kMiB);
}

TEST_F(UnpackedSize, OmitsAnUnknownPayload) {
  const auto payload =
      builder_.CreateVector(std::vector<uint8_t>(kMiB, uint8_t{1}));
  EXPECT_TRUE(UnpacksWithin(
      PackPayload(static_cast<rpc::Payload>(250), payload), 4096));
}

TEST_F(UnpackedSize, IsSmallForAnEmptyEnvelope) {
  EXPECT_TRUE(UnpacksWithin(Pack(rpc::EnvelopeT()), 4096));
  EXPECT_FALSE(UnpacksWithin(Pack(rpc::EnvelopeT()), 0));
}

}  // namespace
}  // namespace tandem
