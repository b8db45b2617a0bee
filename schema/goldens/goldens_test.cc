// The structs still produce the goldens byte for byte, and the listing is
// complete.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "schema/goldens/testing/listing.h"
#include "schema/goldens/testing/samples.h"
#include "schema/layout/field.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/worker_slot.h"

namespace tandem {
namespace {

constexpr char kNext[] =
    "A moved or reinterpreted field needs a new version and a new golden. Next "
    "for a mere addition: bazel run //schema/goldens:generate";

std::string Golden(const std::string& name) {
  std::ifstream file("schema/goldens/" + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Checks that every byte from `begin` to `end` belongs to exactly one row.
void ExpectCovers(const std::vector<FieldRow>& rows, size_t begin, size_t end) {
  size_t offset = begin;
  for (const FieldRow& row : rows) {
    EXPECT_EQ(row.offset, offset) << "gap or overlap before " << row.name;
    offset = row.offset + row.bytes;
  }
  EXPECT_EQ(offset, end);
}

TEST(Goldens, HeaderIsByteForByteTheSame) {
  const LrbcHeader header = SampleHeader();
  const std::string golden = Golden("lrbc_v1.bin");
  ASSERT_EQ(golden.size(), sizeof(header));
  const char* bytes = reinterpret_cast<const char*>(&header);
  for (const FieldRow& row : HeaderRows()) {
    EXPECT_EQ(std::memcmp(bytes + row.offset, &golden[row.offset], row.bytes),
              0)
        << row.name << " at " << row.offset << ". " << kNext;
  }
}

TEST(Goldens, HeaderHasTheSampleValues) {
  const std::string golden = Golden("lrbc_v1.bin");
  LrbcHeader header;
  ASSERT_EQ(golden.size(), sizeof(header));
  std::memcpy(static_cast<void*>(&header), golden.data(), sizeof(header));
  EXPECT_EQ(header.magic, kLrbcMagic);
  EXPECT_EQ(header.version, kLrbcVersion);
  EXPECT_EQ(header.header_size, kLrbcHeaderBytes);
  EXPECT_EQ(header.feature_bits, kFeaturesOfVersion1);
  // relaxed: no other thread uses it.
  EXPECT_EQ(header.mode.load(std::memory_order_relaxed),
            static_cast<uint8_t>(RegionMode::kInference));
  EXPECT_EQ(header.num_envs, 33U);
  EXPECT_STREQ(header.task, "HalfCheetah-v5");
}

TEST(Goldens, SamplesAreByteForByteTheSame) {
  for (const auto& [name, bytes] : SampleFiles()) {
    EXPECT_EQ(bytes, Golden(name)) << name << ": " << kNext;
  }
}

TEST(Goldens, FrameRingHasTheSampleValues) {
  const std::string golden = Golden("flan_v1.bin");
  FlanHeader header;
  FlanSlot slot;
  ASSERT_GT(golden.size(), sizeof(header) + sizeof(slot));
  std::memcpy(static_cast<void*>(&header), golden.data(), sizeof(header));
  std::memcpy(&slot, &golden[sizeof(header)], sizeof(slot));
  EXPECT_EQ(std::string(header.magic, 4), "FLAN");
  EXPECT_EQ(header.head.load(std::memory_order_relaxed), 3U);
  EXPECT_EQ(header.rolling_return.load(std::memory_order_relaxed), -20.25);
  EXPECT_EQ(slot.seq, FlanSeqWhole(3));
  EXPECT_EQ(slot.frame_len, 12U);
}

TEST(Goldens, ListingIsUpToDate) {
  EXPECT_EQ(Golden("flan_v1.txt"), FlanListing())
      << "Next: bazel run //schema/goldens:generate";
  EXPECT_EQ(Golden("scene_v1.txt"), SceneListing())
      << "Next: bazel run //schema/goldens:generate";
  EXPECT_EQ(Golden("lrbc_v1.txt"), Listing())
      << "Next: bazel run //schema/goldens:generate";
}

TEST(Listing, CoversEveryByteOnce) {
  ExpectCovers(HeaderRows(), 0, kLrbcHeaderBytes);
  ExpectCovers(AttendantSlotRows(), 0, sizeof(AttendantSlot));
  ExpectCovers(ImageSlotRows(), 0, sizeof(ImageSlot));
  ExpectCovers(FieldRecordRows(), 0, sizeof(FieldRecord));
  ExpectCovers(GpuFileHandleRows(), 0, sizeof(GpuFileHandle));
  ExpectCovers(WorkersHeaderRows(), 0, sizeof(WorkersHeader));
  ExpectCovers(WorkerSlotRows(), 0, sizeof(WorkerSlot));
  ExpectCovers(RingHeaderRows(), 0, sizeof(RingHeader));
  ExpectCovers(RingDataRows(), sizeof(RingHeader), SampleRing().size());
  ExpectCovers(FlanHeaderRows(), 0, sizeof(FlanHeader));
  ExpectCovers(FlanSlotRows(), sizeof(FlanHeader), SampleFlan().size());
  ExpectCovers(SceneRows(), 0, SampleScene().size());
}

TEST(Listing, NamesAndExplainsEachFieldOnce) {
  std::set<std::string> names;
  for (const FieldRow& row : HeaderRows()) {
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    if (!row.reserved) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
    }
  }
}

void ExpectZeroInReservedBytesOnly(const std::string& golden,
                                   const std::vector<FieldRow>& rows) {
  for (const FieldRow& row : rows) {
    const std::string bytes = golden.substr(row.offset, row.bytes);
    const bool zero = bytes == std::string(row.bytes, '\0');
    EXPECT_EQ(zero, row.reserved) << row.name << " at " << row.offset;
  }
}

// lrbc_v1.bin has no table of fields, no workers and no arrays on a GPU.
TEST(Sample, IsZeroInReservedBytesOnly) {
  ExpectZeroInReservedBytesOnly(Golden("lrbc_v1_own_run.bin"), HeaderRows());
  ExpectZeroInReservedBytesOnly(Golden("field_v1.bin"), FieldRecordRows());
  ExpectZeroInReservedBytesOnly(Golden("workers_header_v1.bin"),
                                WorkersHeaderRows());
  ExpectZeroInReservedBytesOnly(Golden("worker_slot_v1.bin"), WorkerSlotRows());
}

// Otherwise two exchanged fields would not be detected.
TEST(Sample, HoldsEachNumberOnceWhereThereIsAChoice) {
  const std::string golden = Golden("lrbc_v1_gpu.bin");
  std::set<uint64_t> seen;
  for (const FieldRow& row : HeaderRows()) {
    if (row.reserved || row.bytes != row.element_bytes) continue;
    uint64_t value = 0;
    std::memcpy(&value, &golden[row.offset], row.bytes);
    if (value <= 2 || row.name == "header_size") continue;  // value is fixed
    EXPECT_TRUE(seen.insert(value).second) << row.name << " = " << value;
  }
}

}  // namespace
}  // namespace tandem
