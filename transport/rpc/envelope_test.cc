// EnvelopeWriter and EnvelopeReader at both ends of a ring.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "schema/messages/hazel_rpc_generated.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {
namespace {

using Got = EnvelopeReader::Got;

constexpr uint32_t kRingBytes = 4096;

std::vector<uint8_t> Pack(const rpc::EnvelopeT& envelope) {
  flatbuffers::FlatBufferBuilder builder;
  rpc::FinishEnvelopeBuffer(builder, rpc::CreateEnvelope(builder, &envelope));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

// A call with an image of `bytes` known bytes.
std::vector<uint8_t> Image(uint64_t id, size_t bytes) {
  rpc::ImageFrameT frame;
  frame.data.resize(bytes);
  std::iota(frame.data.begin(), frame.data.end(), static_cast<uint8_t>(id));
  rpc::EnvelopeT envelope;
  envelope.method = rpc::MethodId::StreamCamera;
  envelope.correlation_id = id;
  envelope.payload.Set(std::move(frame));
  return Pack(envelope);
}

std::vector<uint8_t> Piece(uint64_t id, uint32_t index, uint32_t count,
                           uint64_t total, size_t bytes) {
  rpc::FragmentT fragment;
  fragment.index = index;
  fragment.count = count;
  fragment.total_bytes = total;
  fragment.data.resize(bytes);
  rpc::EnvelopeT envelope;
  envelope.correlation_id = id;
  envelope.payload.Set(std::move(fragment));
  return Pack(envelope);
}

class EnvelopeTest : public testing::Test {
 protected:
  // Writes `bytes` unchecked, as a peer may.
  void WriteRaw(std::span<const uint8_t> bytes) {
    RingWriter ring = region_.Writer();
    ASSERT_EQ(ring.TryWrite(std::as_bytes(bytes)), ErrorCode::kOk);
  }

  void ExpectImage(uint64_t id, size_t bytes) {
    EXPECT_EQ(reader_.envelope().method(), rpc::MethodId::StreamCamera);
    EXPECT_EQ(reader_.envelope().correlation_id(), id);
    const rpc::ImageFrame* frame = reader_.envelope().payload_as_ImageFrame();
    ASSERT_NE(frame, nullptr);
    ASSERT_EQ(frame->data()->size(), bytes);
    for (uint32_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(frame->data()->Get(i), static_cast<uint8_t>(id + i));
    }
  }

  // Reads until an envelope is complete; continues to write if the ring is
  // full.
  Got Await() {
    for (;;) {
      const Got got = reader_.Next();
      if (got != Got::kPiece && got != Got::kNothing) return got;
      if (got == Got::kNothing && writer_.queued_bytes() == 0) return got;
      EXPECT_NE(writer_.Pump(), ErrorCode::kBrokenPeer);
    }
  }

  TestRegion region_{kRingBytes};
  EnvelopeWriter writer_{region_.Writer()};
  EnvelopeReader reader_{region_.Reader(), {.max_envelope_bytes = 1 << 20}};
};

TEST_F(EnvelopeTest, ArrivesAsItWasSent) {
  EXPECT_EQ(reader_.Next(), Got::kNothing);
  EXPECT_EQ(writer_.Post(Image(7, 100), 7), ErrorCode::kOk);
  EXPECT_EQ(writer_.queued_bytes(), 0u);
  ASSERT_EQ(reader_.Next(), Got::kEnvelope);
  ExpectImage(7, 100);
  EXPECT_EQ(reader_.Next(), Got::kNothing);
}

TEST_F(EnvelopeTest, SplitsEnvelopeLargerThanARingEntry) {
  // Sizes near the capacity of an entry and of the complete ring.
  uint64_t id = 0;
  for (size_t bytes = 1800; bytes < 2200; bytes += 4) {
    ++id;
    (void)writer_.Post(Image(id, bytes), id);
    ASSERT_EQ(Await(), Got::kEnvelope) << bytes;
    ExpectImage(id, bytes);
  }
  ++id;
  EXPECT_EQ(writer_.Post(Image(id, 300'000), id), ErrorCode::kRingFull);
  ASSERT_EQ(Await(), Got::kEnvelope);
  ExpectImage(id, 300'000);
  EXPECT_EQ(reader_.dropped(), 0u);
}

TEST_F(EnvelopeTest, KeepsTheOrderOfPostsOfAnySize) {
  for (uint64_t id = 1; id <= 20; ++id) {
    (void)writer_.Post(Image(id, id % 3 == 0 ? 5000 : 50 * id), id);
  }
  for (uint64_t id = 1; id <= 20; ++id) {
    ASSERT_EQ(Await(), Got::kEnvelope);
    ExpectImage(id, id % 3 == 0 ? 5000 : 50 * id);
  }
  EXPECT_EQ(writer_.queued_bytes(), 0u);
}

TEST_F(EnvelopeTest, CountsInvalidEnvelopesAndReadsOn) {
  std::vector<uint8_t> cut = Image(3, 100);
  cut.resize(cut.size() / 2);
  std::vector<uint8_t> other = Image(3, 100);
  std::memcpy(other.data() + 4, "ABCD", 4);  // Another schema's identifier.
  const std::vector<std::vector<uint8_t>> bad = {
      {}, {1}, std::vector<uint8_t>(500, 0xff), cut, other};
  for (const std::vector<uint8_t>& bytes : bad) {
    WriteRaw(bytes);
    ASSERT_EQ(reader_.Next(), Got::kDropped);
    EXPECT_NE(reader_.problem(), "");
    EXPECT_EQ(reader_.problem_correlation_id(), 0u);
  }
  EXPECT_EQ(reader_.dropped(), bad.size());
  WriteRaw(Image(4, 10));
  ASSERT_EQ(reader_.Next(), Got::kEnvelope);
  ExpectImage(4, 10);
}

TEST_F(EnvelopeTest, DropsFragmentsOfDifferentEnvelopes) {
  const std::vector<std::vector<std::vector<uint8_t>>> bad = {
      {Piece(5, 1, 2, 100, 50)},                           // No first piece.
      {Piece(5, 0, 2, 100, 50), Piece(6, 1, 2, 100, 50)},  // Another call's.
      {Piece(5, 0, 3, 100, 50), Piece(5, 2, 3, 100, 50)},  // One is missing.
      {Piece(5, 0, 2, 100, 50), Piece(5, 0, 2, 100, 50),
       Piece(5, 1, 2, 100, 51)},                           // Too long.
      {Piece(5, 0, 2, 100, 50), Piece(5, 1, 2, 101, 50)},  // Another size.
      {Piece(5, 0, 1, 100, 100)},                          // No envelope.
      {Piece(5, 0, 2, 100, 50), Piece(5, 1, 2, 100, 49)},  // Too short.
      {Piece(5, 0, 1, 0, 0)},
      {Piece(5, 0, 0, 100, 50)},
      {Piece(5, 0, 2, uint64_t{1} << 40, 50)}};  // Exceeds the limit.
  uint64_t dropped = 0;
  for (const auto& pieces : bad) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      WriteRaw(pieces[i]);
      ASSERT_EQ(reader_.Next(),
                i + 1 < pieces.size() ? Got::kPiece : Got::kDropped);
    }
    EXPECT_NE(reader_.problem_correlation_id(), 0u);
    EXPECT_EQ(reader_.dropped(), ++dropped);
    WriteRaw(Image(9, 30));
    ASSERT_EQ(reader_.Next(), Got::kEnvelope);
    ExpectImage(9, 30);
  }
}

TEST_F(EnvelopeTest, RefusesToWriteMoreThanTheLimitInPieces) {
  EnvelopeWriter writer(region_.Writer(), /*max_piecewise_bytes=*/4096);
  EXPECT_EQ(writer.max_envelope_bytes(), 4096u);
  EXPECT_EQ(writer.Post(Image(7, 5000), 7), ErrorCode::kMessageTooLarge);
  EXPECT_EQ(writer.queued_bytes(), 0u);
  EXPECT_EQ(reader_.Next(), Got::kNothing);
  EXPECT_EQ(writer.Post(Image(8, 100), 8), ErrorCode::kOk);
  ASSERT_EQ(reader_.Next(), Got::kEnvelope);
  ExpectImage(8, 100);
}

TEST_F(EnvelopeTest, DropsTooLargeEnvelopesWithACodeOfTheirOwn) {
  WriteRaw(Piece(5, 0, 2, uint64_t{1} << 40, 50));
  ASSERT_EQ(reader_.Next(), Got::kDropped);
  EXPECT_EQ(reader_.problem_code(), ErrorCode::kMessageTooLarge);
  WriteRaw(Piece(5, 0, 0, 100, 50));
  ASSERT_EQ(reader_.Next(), Got::kDropped);
  EXPECT_EQ(reader_.problem_code(), ErrorCode::kInvalidArgument);
}

TEST_F(EnvelopeTest, FragmentAllocatesNothingForItsAnnouncedSize) {
  EnvelopeReader reader(region_.Reader(), {});
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const size_t before = in_use();
  WriteRaw(Piece(5, 0, 1000, size_t{64} * 1024 * 1024, 1000));
  ASSERT_EQ(reader.Next(), Got::kPiece);
  EXPECT_LT(in_use(), before + 64 * 1024);
}

TEST_F(EnvelopeTest, EnvelopeAmongFragmentsDiscardsThem) {
  WriteRaw(Piece(5, 0, 2, 100, 50));
  ASSERT_EQ(reader_.Next(), Got::kPiece);
  WriteRaw(Image(6, 10));
  ASSERT_EQ(reader_.Next(), Got::kEnvelope);
  ExpectImage(6, 10);
  EXPECT_EQ(reader_.dropped(), 1u);
  WriteRaw(Piece(5, 1, 2, 100, 50));
  EXPECT_EQ(reader_.Next(), Got::kDropped);
}

TEST_F(EnvelopeTest, FragmentHoldsNoFragments) {
  const std::vector<uint8_t> inner = Piece(8, 0, 2, 100, 50);
  rpc::FragmentT fragment;
  fragment.count = 1;
  fragment.total_bytes = inner.size();
  fragment.data = inner;
  rpc::EnvelopeT envelope;
  envelope.correlation_id = 8;
  envelope.payload.Set(std::move(fragment));
  WriteRaw(Pack(envelope));
  EXPECT_EQ(reader_.Next(), Got::kDropped);
}

TEST_F(EnvelopeTest, DropsEnvelopeWhoseUnpackedSizeIsTooLarge) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<flatbuffers::Offset<flatbuffers::String>> names(
      100'000, builder.CreateString(std::string(100'000, 'n')));
  const auto all = builder.CreateVector(names);
  rpc::GetMujocoInfoResponseBuilder response(builder);
  response.add_joint_names(all);
  const auto payload = response.Finish();
  rpc::EnvelopeBuilder envelope(builder);
  envelope.add_correlation_id(8);
  envelope.add_payload_type(rpc::Payload::GetMujocoInfoResponse);
  envelope.add_payload(payload.Union());
  rpc::FinishEnvelopeBuffer(builder, envelope.Finish());
  (void)writer_.Post(std::span(builder.GetBufferPointer(), builder.GetSize()),
                     8);
  ASSERT_EQ(Await(), Got::kDropped);
  EXPECT_EQ(reader_.problem_correlation_id(), 8u);
  EXPECT_EQ(reader_.problem_code(), ErrorCode::kMessageTooLarge);
  (void)writer_.Post(Image(9, 30), 9);
  ASSERT_EQ(Await(), Got::kEnvelope);
  ExpectImage(9, 30);
}

TEST_F(EnvelopeTest, BrokenRingIsBrokenForBothSides) {
  region_.SetPositions(3, 0);
  EXPECT_EQ(reader_.Next(), Got::kBrokenPeer);
  region_.SetPositions(0, 3);
  ErrorCode code = ErrorCode::kOk;
  for (int i = 0; i < 3; ++i) code = writer_.Post(Image(1, 1500), 1);
  EXPECT_EQ(code, ErrorCode::kBrokenPeer);
}

}  // namespace
}  // namespace tandem
