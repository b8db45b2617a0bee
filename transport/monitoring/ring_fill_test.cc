#include "transport/monitoring/ring_fill.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "transport/memory/observed_file.h"
#include "transport/memory/testing/placed_file.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/ring/ring.h"
#include "transport/ring/testing/ring_test_region.h"

namespace tandem {
namespace {

constexpr uint64_t kOffset = 64;

// A ring that tests fill by the real writer, and its copy in a file.
class RingFillTest : public testing::Test {
 protected:
  void Start(uint32_t capacity, uint32_t start_pos = 0) {
    ring_ = std::make_unique<TestRegion>(capacity, start_pos);
  }
  void Write(size_t bytes) {
    RingWriter writer = ring_->Writer();
    ASSERT_EQ(writer.TryWrite(std::vector<std::byte>(bytes)), ErrorCode::kOk);
  }
  // The number of messages that the real reader reads from a copy of the ring.
  size_t ReadAll() {
    RingReader reader = ring_->Reader();
    std::vector<std::byte> buffer(reader.max_message_bytes());
    size_t messages = 0;
    size_t bytes = 0;
    while (reader.TryRead(buffer, &bytes) == ErrorCode::kOk) ++messages;
    return messages;
  }
  RingFill Fill(uint64_t cut_bytes = 0) {
    const char* header = reinterpret_cast<const char*>(&ring_->header());
    const char* data = reinterpret_cast<const char*>(ring_->data().data());
    std::string bytes(kOffset, '\0');
    bytes.append(header, sizeof(RingHeader));
    bytes.append(data, ring_->data().size());
    bytes.resize(bytes.size() - cut_bytes);
    const PlacedFile placed(name_, bytes, PlacedFile::kDead);
    const absl::StatusOr<ObservedFile> file = ObservedFile::Open(name_);
    EXPECT_TRUE(file.ok()) << file.status();
    return ReadRingFill(*file, kOffset,
                        static_cast<uint32_t>(ring_->data().size()));
  }

  const std::string name_ = UniqueRegionName("fill");
  std::unique_ptr<TestRegion> ring_;
};

TEST_F(RingFillTest, AnEmptyRingHoldsNothing) {
  Start(128, 40);
  const RingFill fill = Fill();
  EXPECT_EQ(fill.capacity, 128u);
  EXPECT_EQ(fill.used_bytes, 0u);
  EXPECT_EQ(fill.messages, 0u);
  EXPECT_EQ(fill.problem, "");
}

TEST_F(RingFillTest, CountsMessagesAndBytesAcrossASkipAndTheWrapAt32Bits) {
  Start(128, 0xFFFFFFF0 - 16);  // offset 96: 32 bytes to the end
  Write(0);                     // 8
  Write(40);                    // does not fit the 24 left: a skip, then 48
  Write(3);                     // 8
  const RingFill fill = Fill();
  EXPECT_EQ(fill.used_bytes, 8u + 24u + 48u + 8u);
  EXPECT_EQ(fill.messages, 3u);
  EXPECT_EQ(fill.problem, "");
}

TEST_F(RingFillTest, AFullRingIsFull) {
  Start(64);
  for (int i = 0; i < 8; ++i) Write(4);
  const RingFill fill = Fill();
  EXPECT_EQ(fill.used_bytes, 64u);
  EXPECT_EQ(fill.messages, 8u);
}

TEST_F(RingFillTest, CountsAMillionBytesOfMessagesToItsBound) {
  Start(1 << 20);
  for (uint32_t i = 0; i < RingFill::kMostCounted + 10; ++i) Write(4);
  EXPECT_EQ(Fill().messages, RingFill::kMostCounted);
}

TEST_F(RingFillTest, AgreesWithTheReaderOnAnyContent) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Start(1024, static_cast<uint32_t>(random()) & ~7u);
    const uint32_t writes = static_cast<uint32_t>(random() % 40);
    for (uint32_t i = 0; i < writes; ++i) {
      RingWriter writer = ring_->Writer();
      const ErrorCode code =
          writer.TryWrite(std::vector<std::byte>(random() % 200));
      if (code == ErrorCode::kRingFull) break;
    }
    const uint32_t used = ring_->write_pos() - ring_->read_pos();
    const RingFill fill = Fill();
    EXPECT_EQ(fill.used_bytes, used);
    EXPECT_EQ(fill.problem, "");
    EXPECT_EQ(fill.messages, ReadAll()) << "round " << round;
  }
}

TEST_F(RingFillTest, InvalidPositionsAreAProblem) {
  Start(128);
  for (const auto& [write_pos, read_pos] :
       {std::pair{136u, 0u}, {0u, 8u}, {12u, 0u}, {12u, 4u}}) {
    ring_->SetPositions(write_pos, read_pos);
    const RingFill fill = Fill();
    EXPECT_NE(fill.problem, "") << write_pos << " " << read_pos;
    EXPECT_EQ(fill.used_bytes, 0u);
    EXPECT_FALSE(fill.messages.has_value());
  }
}

TEST_F(RingFillTest, InvalidLengthsAreAProblem) {
  Start(128);
  Write(20);
  for (const uint32_t length :
       {61u, 64u, 0x7FFFFFFFu, 0xFFFFFFF9u, 0xFFFFFFFEu, kRingSkip, 21u}) {
    ring_->SetWordAt(0, length);
    const RingFill fill = Fill();
    EXPECT_NE(fill.problem, "") << length;
    EXPECT_EQ(fill.used_bytes, 24u);
    EXPECT_FALSE(fill.messages.has_value());
  }
}

TEST_F(RingFillTest, ARandomRingIsCountedOrRefusedAsTheReaderDoes) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    Start(64);
    for (uint32_t offset = 0; offset < 64; offset += 4) {
      const uint32_t small = static_cast<uint32_t>(random() % 40);
      ring_->SetWordAt(offset, random() % 5 == 0 ? kRingSkip : small);
    }
    ring_->SetPositions(static_cast<uint32_t>(random() % 9) * 8, 0);
    const RingFill fill = Fill();
    RingReader reader = ring_->Reader();
    std::vector<std::byte> buffer(reader.max_message_bytes());
    uint32_t messages = 0;
    size_t bytes = 0;
    ErrorCode code = ErrorCode::kOk;
    while ((code = reader.TryRead(buffer, &bytes)) == ErrorCode::kOk) {
      ++messages;
    }
    if (code == ErrorCode::kBrokenPeer) {
      EXPECT_NE(fill.problem, "") << "round " << round;
    } else {
      EXPECT_EQ(fill.messages, messages) << "round " << round;
    }
  }
}

TEST_F(RingFillTest, ARingThatTheFileCutsOffIsAProblem) {
  Start(128);
  Write(20);
  EXPECT_NE(Fill(/*cut_bytes=*/1).problem, "");
  EXPECT_NE(Fill(/*cut_bytes=*/200).problem, "");
}

TEST_F(RingFillTest, AnyOffsetAndSizeIsBounded) {
  const PlacedFile placed(name_, std::string(4096, '\x11'), PlacedFile::kDead);
  const absl::StatusOr<ObservedFile> file = ObservedFile::Open(name_);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const uint64_t offset : {uint64_t{0}, uint64_t{4000}, uint64_t{4096},
                                uint64_t{1} << 40, ~uint64_t{0}}) {
    for (const uint32_t capacity : {0u, 1u, 63u, 64u, 1u << 30, 1u << 31}) {
      EXPECT_NE(ReadRingFill(*file, offset, capacity).problem, "");
    }
  }
}

}  // namespace
}  // namespace tandem
