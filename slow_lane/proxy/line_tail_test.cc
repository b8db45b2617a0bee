#include "slow_lane/proxy/line_tail.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace tandem::slow_lane {
namespace {

using Kind = TailLine::Kind;

// A file that the test writes.
class WrittenFile {
 public:
  WrittenFile()
      : path_(testing::TempDir() + "/line_tail_test_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()),
        fd_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
  }
  ~WrittenFile() { unlink(path_.c_str()); }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }

  void Append(const std::string& bytes) {
    const off_t end = lseek(fd_.get(), 0, SEEK_END);
    ASSERT_EQ(pwrite(fd_.get(), bytes.data(), bytes.size(), end),
              static_cast<ssize_t>(bytes.size()));
  }
  void Resize(off_t bytes) { ASSERT_EQ(ftruncate(fd_.get(), bytes), 0); }

  LineTail Tail(uint64_t offset = 0) const {
    absl::StatusOr<LineTail> tail = LineTail::Open(path_, offset);
    EXPECT_TRUE(tail.ok()) << tail.status();
    return *std::move(tail);
  }

 private:
  std::string path_;
  UniqueFd fd_;
};

// Returns the texts of the available lines.
std::vector<std::string> Texts(LineTail* tail) {
  std::vector<std::string> texts;
  while (true) {
    const auto line = tail->Next();
    EXPECT_TRUE(line.ok()) << line.status();
    if (!line.ok() || !line->has_value()) return texts;
    texts.emplace_back((*line)->text);
  }
}

TailLine NextOf(LineTail* tail) {
  const auto line = tail->Next();
  EXPECT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line.ok() && line->has_value()) << "a line was expected";
  return line.ok() && line->has_value() ? **line : TailLine();
}

bool HasNone(LineTail* tail) {
  const auto line = tail->Next();
  return line.ok() && !line->has_value();
}

TEST(LineTail, HasNoLineInAnEmptyFile) {
  const WrittenFile file;
  LineTail tail = file.Tail();
  EXPECT_TRUE(HasNone(&tail));
  tail.Finish();
  EXPECT_TRUE(HasNone(&tail));
  EXPECT_EQ(tail.next_offset(), 0u);
}

TEST(LineTail, ReportsOffsetAndLengthOfEachLine) {
  WrittenFile file;
  file.Append("one\n\nthree\r\n");
  LineTail tail = file.Tail();
  TailLine line = NextOf(&tail);
  EXPECT_EQ(line.text, "one");
  EXPECT_EQ(line.offset, 0u);
  EXPECT_EQ(line.length, 3u);
  EXPECT_EQ(line.next_offset, 4u);
  line = NextOf(&tail);
  EXPECT_EQ(line.text, "");
  EXPECT_EQ(line.offset, 4u);
  EXPECT_EQ(line.next_offset, 5u);
  line = NextOf(&tail);
  EXPECT_EQ(line.text, "three\r");
  EXPECT_EQ(line.offset, 5u);
  EXPECT_EQ(line.length, 6u);
  EXPECT_EQ(tail.next_offset(), 12u);
  EXPECT_TRUE(HasNone(&tail));
}

TEST(LineTail, WaitsForTheNewlineOfALine) {
  WrittenFile file;
  file.Append("one\ntw");
  LineTail tail = file.Tail();
  EXPECT_THAT(Texts(&tail), testing::ElementsAre("one"));
  EXPECT_EQ(tail.next_offset(), 4u);
  file.Append("o");
  EXPECT_TRUE(HasNone(&tail));
  file.Append("\nthree\nfo");
  EXPECT_THAT(Texts(&tail), testing::ElementsAre("two", "three"));
  EXPECT_EQ(tail.next_offset(), 14u);
}

TEST(LineTail, ReturnsTheRestAfterFinish) {
  WrittenFile file;
  file.Append("one\ntwo");
  LineTail tail = file.Tail();
  tail.Finish();
  EXPECT_EQ(NextOf(&tail).kind, Kind::kComplete);
  const TailLine rest = NextOf(&tail);
  EXPECT_EQ(rest.kind, Kind::kIncomplete);
  EXPECT_EQ(rest.text, "two");
  EXPECT_EQ(rest.length, 3u);
  EXPECT_EQ(rest.next_offset, 7u);
  EXPECT_TRUE(HasNone(&tail));
  file.Append(" and more\n");
  EXPECT_EQ(NextOf(&tail).text, " and more");
}

TEST(LineTail, StartsAtAnOffset) {
  WrittenFile file;
  file.Append("one\ntwo\nthree\n");
  LineTail tail = file.Tail(4);
  const TailLine line = NextOf(&tail);
  EXPECT_EQ(line.text, "two");
  EXPECT_EQ(line.offset, 4u);
}

TEST(LineTail, RefusesAFileShorterThanItsOffset) {
  WrittenFile file;
  file.Append("one\n");
  LineTail tail = file.Tail(5);
  const auto line = tail.Next();
  ASSERT_EQ(line.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(line.status().message()),
              testing::AllOf(testing::HasSubstr("at least 5"),
                             testing::HasSubstr("found 4"),
                             testing::HasSubstr(file.path())));
}

TEST(LineTail, DetectsAFileThatWasCut) {
  WrittenFile file;
  file.Append("one\ntwo");
  LineTail tail = file.Tail();
  EXPECT_THAT(Texts(&tail), testing::ElementsAre("one"));
  file.Resize(5);
  EXPECT_EQ(tail.Next().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(LineTail, DetectsAFileThatWasCutAndHasGrownAgain) {
  WrittenFile file;
  file.Append("one\ntwo\n");
  LineTail tail = file.Tail();
  EXPECT_THAT(Texts(&tail), testing::ElementsAre("one", "two"));
  file.Append("three\n");
  EXPECT_THAT(Texts(&tail), testing::ElementsAre("three"));
  file.Resize(0);
  file.Append("ten\neleven\ntwelve\n");
  const auto line = tail.Next();
  ASSERT_EQ(line.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(line.status().message()),
              testing::AllOf(testing::HasSubstr("before byte 14"),
                             testing::HasSubstr(file.path())));
  EXPECT_FALSE(tail.Next().ok());
}

TEST(LineTail, RepeatsTheReadAfterAnError) {
  WrittenFile file;
  file.Append("one\n");
  LineTail tail = file.Tail();
  EXPECT_EQ(NextOf(&tail).text, "one");
  file.Resize(2);
  EXPECT_FALSE(tail.Next().ok());
  EXPECT_FALSE(tail.Next().ok());
  file.Append("e\ntwo\n");
  EXPECT_EQ(NextOf(&tail).text, "two");
}

TEST(LineTail, ReportsAReadError) {
  const WrittenFile file;
  LineTail tail(UniqueFd(open(file.path().c_str(), O_WRONLY | O_CLOEXEC)),
                "the name", /*offset=*/0);
  const auto line = tail.Next();
  ASSERT_FALSE(line.ok());
  EXPECT_THAT(std::string(line.status().message()),
              testing::HasSubstr("cannot read at byte 0 of the name"));
}

TEST(LineTail, OpensRegularFilesOnly) {
  EXPECT_EQ(
      LineTail::Open(testing::TempDir() + "/there_is_none", 0).status().code(),
      absl::StatusCode::kNotFound);
  EXPECT_EQ(LineTail::Open(testing::TempDir(), 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::string pipe = testing::TempDir() + "/line_tail_test_pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(LineTail::Open(pipe, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  unlink(pipe.c_str());
}

TEST(LineTail, KeepsNulBytes) {
  WrittenFile file;
  const std::string text("a\0b\0", 4);
  file.Append(text + "\n");
  LineTail tail = file.Tail();
  EXPECT_EQ(NextOf(&tail).text, text);
}

TEST(LineTail, ReadsAHoleAsNulBytes) {
  WrittenFile file;
  file.Resize(1'000'000);
  file.Append("x\ny\n");
  LineTail tail = file.Tail();
  EXPECT_EQ(NextOf(&tail).text, std::string(1'000'000, '\0') + "x");
  EXPECT_EQ(NextOf(&tail).text, "y");
}

TEST(LineTail, ReadsLinesAtTheEdgesOfItsChunks) {
  for (size_t first = LineTail::kChunkBytes - 2;
       first <= LineTail::kChunkBytes + 2; ++first) {
    SCOPED_TRACE(first);
    WrittenFile file;
    const std::string one(first, '1');
    const std::string two(2 * LineTail::kChunkBytes, '2');
    file.Append(one + "\n" + two + "\nthree\n");
    LineTail tail = file.Tail();
    EXPECT_THAT(Texts(&tail), testing::ElementsAre(one, two, "three"));
    EXPECT_EQ(tail.next_offset(), one.size() + two.size() + 8);
  }
}

TEST(LineTail, ReadsALineOfTheLargestSize) {
  WrittenFile file;
  const std::string longest(LineTail::kMaxLineBytes, 'x');
  file.Append("a\n" + longest + "\nb\n");
  LineTail tail = file.Tail();
  EXPECT_EQ(NextOf(&tail).text, "a");
  const TailLine line = NextOf(&tail);
  EXPECT_EQ(line.kind, Kind::kComplete);
  EXPECT_EQ(line.length, longest.size());
  EXPECT_TRUE(line.text == longest);
  EXPECT_EQ(NextOf(&tail).text, "b");
}

// The line exceeds the limit by each number of bytes for which the reader finds
// the newline in another state.
TEST(LineTail, SkipsAnOversizedLine) {
  for (const size_t more :
       {size_t{1}, LineTail::kChunkBytes - 1, LineTail::kChunkBytes,
        LineTail::kChunkBytes + 1, 3 * LineTail::kChunkBytes}) {
    SCOPED_TRACE(more);
    WrittenFile file;
    const std::string large = "{" + std::string(LineTail::kMaxLineBytes, 'x') +
                              std::string(more - 1, 'y');
    file.Append("a\n" + large + "\nb\n");
    LineTail tail = file.Tail();
    EXPECT_EQ(NextOf(&tail).text, "a");
    const TailLine line = NextOf(&tail);
    EXPECT_EQ(line.kind, Kind::kOversized);
    EXPECT_EQ(line.offset, 2u);
    EXPECT_EQ(line.length, large.size());
    EXPECT_EQ(line.next_offset, large.size() + 3);
    EXPECT_EQ(line.text, large.substr(0, LineTail::kHeadBytes));
    const TailLine next = NextOf(&tail);
    EXPECT_EQ(next.kind, Kind::kComplete);
    EXPECT_EQ(next.text, "b");
    EXPECT_EQ(next.offset, large.size() + 3);
  }
}

long PeakKib() {
  std::FILE* const status = std::fopen("/proc/self/status", "re");
  char line[256];
  long peak = -1;
  while (status != nullptr && std::fgets(line, sizeof(line), status)) {
    if (std::sscanf(line, "VmHWM: %ld kB", &peak) == 1) break;
  }
  if (status != nullptr) std::fclose(status);
  return peak;
}

TEST(LineTail, SkipsAnOversizedLineInConstantMemory) {
  WrittenFile file;
  constexpr off_t kLength = off_t{512} << 20;  // a hole: uses no disk space
  file.Resize(kLength);
  file.Append("\nb\n");
  LineTail tail = file.Tail();
  const long before = PeakKib();
  const TailLine line = NextOf(&tail);
  EXPECT_EQ(line.kind, Kind::kOversized);
  EXPECT_EQ(line.length, static_cast<uint64_t>(kLength));
  EXPECT_EQ(NextOf(&tail).text, "b");
  ASSERT_GT(before, 0);
  EXPECT_LT(PeakKib() - before, 64 << 10);
}

TEST(LineTail, WaitsForTheNewlineOfAnOversizedLine) {
  WrittenFile file;
  const std::string large(LineTail::kMaxLineBytes + 5000, 'x');
  file.Append(large);
  LineTail tail = file.Tail();
  EXPECT_TRUE(HasNone(&tail));
  EXPECT_TRUE(HasNone(&tail));
  EXPECT_EQ(tail.next_offset(), 0u);
  file.Append("yy");
  EXPECT_TRUE(HasNone(&tail));
  file.Append("\n");
  EXPECT_EQ(NextOf(&tail).length, large.size() + 2);
}

TEST(LineTail, ReturnsAnOversizedRestAfterFinish) {
  WrittenFile file;
  const std::string large(LineTail::kMaxLineBytes + 5000, 'x');
  file.Append(large);
  LineTail tail = file.Tail();
  tail.Finish();
  const TailLine line = NextOf(&tail);
  EXPECT_EQ(line.kind, Kind::kOversized);
  EXPECT_EQ(line.length, large.size());
  EXPECT_EQ(line.next_offset, large.size());
  EXPECT_TRUE(HasNone(&tail));
}

TEST(LineTail, KeepsALineValidWhenItIsMoved) {
  WrittenFile file;
  file.Append("one\ntwo\n");
  LineTail tail = file.Tail();
  const TailLine line = NextOf(&tail);
  LineTail moved = std::move(tail);
  EXPECT_EQ(line.text, "one");
  EXPECT_EQ(NextOf(&moved).text, "two");
}

}  // namespace
}  // namespace tandem::slow_lane
