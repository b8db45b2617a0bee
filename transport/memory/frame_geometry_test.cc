#include "transport/frame_geometry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "absl/strings/match.h"
#include "base/error.h"
#include "schema/layout/flan.h"

namespace tandem {
namespace {

constexpr FrameGeometry kGeometry = {
    .width = 5, .height = 3, .capacity = 2, .metadata_bytes = 7};

TEST(FrameGeometry, ReadsBackPlannedGeometry) {
  for (const FrameGeometry& geometry :
       {kGeometry, FrameGeometry{.width = 1, .height = 1, .channels = 4},
        FrameGeometry{.width = kMaxFrameSide,
        .height = kMaxFrameSide,
        .channels = 4,
        .capacity = kMaxFrameSlots,
        .metadata_bytes = kMaxMetadataBytes},
        FrameGeometry{.width = kMaxBytesFrame,
        .height = 1,
        .channels = 1,
        .kind = FrameKind::kBytes}}) {
    const absl::StatusOr<FlanHeader> header = PlanFrameRing(geometry);
    ASSERT_TRUE(header.ok()) << header.status();
    const absl::StatusOr<FrameGeometry> found =
        CheckFrameRing(*header, FrameRingBytes(*header), geometry.kind);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, geometry);
    EXPECT_EQ(CodeOf(CheckFrameRing(*header, FrameRingBytes(*header) - 1,
                                    geometry.kind)
                         .status()),
              ErrorCode::kLayoutMismatch);
  }
}

TEST(FrameGeometry, ReadersOfOneKindRefuseRingsOfTheOther) {
  const FrameGeometry bytes = {
      .width = 45, .height = 1, .channels = 1, .kind = FrameKind::kBytes};
  for (const FrameGeometry& geometry : {kGeometry, bytes}) {
    const FrameKind other = geometry.kind == FrameKind::kBytes
                                ? FrameKind::kImages
                                : FrameKind::kBytes;
    const FlanHeader header = *PlanFrameRing(geometry);
    EXPECT_EQ(CodeOf(CheckFrameRing(header, 1 << 20, other).status()),
              ErrorCode::kLayoutMismatch);
    FrameGeometry mixed = geometry;
    mixed.kind = other;
    EXPECT_EQ(CodeOf(PlanFrameRing(mixed).status()),
              ErrorCode::kInvalidArgument);
  }
}

TEST(FrameGeometry, AlignedSlotsStartOnMultiplesOf64) {
  for (uint32_t width = 1; width < 70; ++width) {
    FrameGeometry geometry = kGeometry;
    geometry.width = width;
    const FrameGeometry aligned = WithAlignedSlots(geometry);
    EXPECT_GE(aligned.metadata_bytes, geometry.metadata_bytes);
    EXPECT_LT(aligned.metadata_bytes, geometry.metadata_bytes + 64);
    EXPECT_EQ(PlanFrameRing(aligned)->slot_size % 64, 0u);
    EXPECT_EQ(WithAlignedSlots(aligned), aligned);
  }
}

TEST(FrameGeometry, NamesTheInvalidField) {
  const struct {
    const char* field;
    std::function<void(FlanHeader&)> spoil;
  } kCases[] = {
      {"magic", [](FlanHeader& h) { h.magic[0] = 'f'; }},
      {"version", [](FlanHeader& h) { h.version = 2; }},
      {"width", [](FlanHeader& h) { h.width = 0; }},
      {"height", [](FlanHeader& h) { h.height = kMaxFrameSide + 1; }},
      {"channels", [](FlanHeader& h) { h.channels = 2; }},
      {"format", [](FlanHeader& h) { h.channels = 4; }},
      {"format", [](FlanHeader& h) { h.format = kFlanRgba; }},
      {"capacity", [](FlanHeader& h) { h.capacity = 0; }},
      {"payload_size", [](FlanHeader& h) { h.payload_size = 44; }},
      {"payload_size", [](FlanHeader& h) { h.payload_size = 0xFFFFFFFF; }},
      {"slot_size", [](FlanHeader& h) { h.slot_size += 1; }},
      {"slots", [](FlanHeader& h) { h.capacity = 3; }},
  };
  for (const auto& [field, spoil] : kCases) {
    FlanHeader header = *PlanFrameRing(kGeometry);
    const uint64_t bytes = FrameRingBytes(header);
    spoil(header);
    const absl::Status status = CheckFrameRing(header, bytes).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch) << field;
    EXPECT_TRUE(absl::StrContains(status.message(), field)) << status;
  }
}

TEST(FrameGeometry, AHeaderThatIsBeingWrittenIsNotReady) {
  FlanHeader header = *PlanFrameRing(kGeometry);
  for (int written = 3; written >= 0; --written) {
    header.magic[written] = '\0';
    EXPECT_EQ(CodeOf(CheckFrameRing(header, 1 << 20).status()),
              ErrorCode::kNotReady);
  }
}

}  // namespace
}  // namespace tandem
