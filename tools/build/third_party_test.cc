// Links every third-party library once: a broken library fails here, before
// any code that uses it.
#include <benchmark/benchmark.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "flatbuffers/flatbuffers.h"

ABSL_FLAG(int, third_party_number, 3, "A flag for this test.");

namespace {

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected an even number, found %d", number));
  }
  return number / 2;
}

TEST(Abseil, StatusOrCarriesAFormattedMessage) {
  EXPECT_EQ(*Half(4), 2);
  EXPECT_THAT(std::string(Half(3).status().message()),
              testing::HasSubstr("found 3"));
}

TEST(Abseil, FlagsAreRegisteredAndFound) {
  EXPECT_EQ(absl::GetFlag(FLAGS_third_party_number), 3);
  EXPECT_NE(absl::FindCommandLineFlag("third_party_number"), nullptr);
}

TEST(Abseil, ContainersTimeAndLocksLink) {
  absl::flat_hash_map<std::string, int> map = {{"a", 1}};
  const std::vector<int> numbers = {1, 2};
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool cleaned = false;
  {
    absl::Cleanup cleanup = [&cleaned] { cleaned = true; };
  }
  EXPECT_TRUE(cleaned);
  EXPECT_EQ(map["a"], absl::MakeConstSpan(numbers).front());
  EXPECT_GT(absl::Now(), absl::UnixEpoch());
}

TEST(FlatBuffers, BuildsABuffer) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(builder.CreateString("tandem"));
  EXPECT_GT(builder.GetSize(), 6U);
}

TEST(Mujoco, LibraryAndHeadersAreOfOneVersion) {
  EXPECT_EQ(mj_version(), mjVERSION_HEADER);
}

TEST(Benchmark, Links) { benchmark::ClearRegisteredBenchmarks(); }

TEST(Build, AssertionsAreOn) {
#ifdef NDEBUG
  FAIL() << "NDEBUG is defined; .bazelrc undefines it";
#endif
}

}  // namespace
