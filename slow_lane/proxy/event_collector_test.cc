#include "slow_lane/proxy/event_collector.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem::slow_lane {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::HasSubstr;

std::string StepLine(int step) {
  return absl::StrCat(R"({"event_type":"step","episode":0,"step_index":)", step,
                      R"(,"reward":1})");
}
constexpr char kEpisodeLine[] =
    R"({"event_type":"episode","episode":0,"total_reward":1,"steps":1})";
constexpr char kLifecycleLine[] = R"({"event":"run_started"})";

class EventCollectorTest : public testing::Test {
 protected:
  EventCollectorTest()
      : path_(testing::TempDir() + "/event_collector_test_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    unlink(path_.c_str());
    Append("");
  }
  ~EventCollectorTest() override { unlink(path_.c_str()); }

  void Append(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::app) << bytes;
  }
  EventCollector Open(const v1::Position& position = {},
                      uint64_t step_stride = 1) const {
    return *EventCollector::Open(path_, position, step_stride);
  }
  const std::string& path() const { return path_; }

  static v1::EventBatch NextOf(EventCollector* collector) {
    v1::EventBatch batch;
    const absl::StatusOr<bool> found = collector->Collect(&batch);
    EXPECT_TRUE(found.ok() && *found) << found.status();
    return batch;
  }
  static bool HasNone(EventCollector* collector) {
    v1::EventBatch batch;
    const absl::StatusOr<bool> found = collector->Collect(&batch);
    return found.ok() && !*found;
  }

 private:
  std::string path_;
};

template <typename Messages>
std::vector<uint64_t> NumbersOf(const Messages& messages) {
  std::vector<uint64_t> numbers;
  for (const auto& message : messages) numbers.push_back(message.seq_id());
  return numbers;
}

TEST_F(EventCollectorTest, NumbersEachStreamFromOne) {
  const std::string lines = absl::StrCat(
      kLifecycleLine, "\n", StepLine(0), "\nsome text\n{\n", StepLine(1), "\n",
      kEpisodeLine, "\n\n", StepLine(0), "\n{}\n", kLifecycleLine, "\n");
  Append(lines);
  EventCollector collector = Open();
  const v1::EventBatch batch = NextOf(&collector);
  EXPECT_THAT(NumbersOf(batch.steps()), ElementsAre(1, 2, 3));
  EXPECT_THAT(NumbersOf(batch.episodes()), ElementsAre(1));
  EXPECT_THAT(NumbersOf(batch.lifecycle()), ElementsAre(1, 2));
  EXPECT_THAT(NumbersOf(batch.malformed()), ElementsAre(1, 2));
  EXPECT_TRUE(MessageDifferencer::Equals(batch.begin(), v1::Position()));
  EXPECT_EQ(batch.end().offset(), lines.size());
  EXPECT_EQ(batch.end().steps(), 3u);
  EXPECT_EQ(batch.end().episodes(), 1u);
  EXPECT_EQ(batch.end().lifecycle(), 2u);
  EXPECT_EQ(batch.end().malformed(), 2u);
  EXPECT_EQ(batch.end().text_lines(), 2u);
  EXPECT_TRUE(MessageDifferencer::Equals(batch.end(), collector.position()));
  EXPECT_TRUE(HasNone(&collector));
}

TEST_F(EventCollectorTest, ContinuesAtTheEndOfTheLastBatch) {
  Append(StepLine(0) + "\n" + StepLine(1).substr(0, 9));
  EventCollector first = Open();
  const v1::EventBatch one = NextOf(&first);
  EXPECT_EQ(one.end().offset(), StepLine(0).size() + 1);
  Append(StepLine(1).substr(9) + "\n");
  const v1::EventBatch two = NextOf(&first);
  EXPECT_THAT(NumbersOf(two.steps()), ElementsAre(2));
  EXPECT_TRUE(MessageDifferencer::Equals(two.begin(), one.end()));

  EventCollector second = Open(one.end());
  EXPECT_TRUE(MessageDifferencer::Equals(NextOf(&second), two));
}

TEST_F(EventCollectorTest, KeepsTheHeadOfAMalformedLine) {
  Append("text\n{\"a\":\x01" + std::string(2000, 'x') + "\n");
  EventCollector collector = Open();
  const v1::EventBatch batch = NextOf(&collector);
  ASSERT_EQ(batch.malformed_size(), 1);
  const v1::MalformedLine& line = batch.malformed(0);
  EXPECT_EQ(line.offset(), 5u);
  EXPECT_EQ(line.length(), 2006u);
  EXPECT_THAT(line.reason(), HasSubstr("byte 5"));
  EXPECT_EQ(line.head(),
            "{\"a\":\\x01" + std::string(EventCollector::kHeadBytes - 9, 'x'));
}

TEST_F(EventCollectorTest, SendsEveryNthStepAndCountsAll) {
  for (int step = 0; step < 10; ++step) Append(StepLine(step) + "\n");
  Append(std::string(kEpisodeLine) + "\n" + kEpisodeLine + "\n");
  EventCollector collector = Open({}, /*step_stride=*/4);
  const v1::EventBatch batch = NextOf(&collector);
  EXPECT_THAT(NumbersOf(batch.steps()), ElementsAre(1, 5, 9));
  EXPECT_EQ(batch.steps(1).step_index(), 4u);
  EXPECT_THAT(NumbersOf(batch.episodes()), ElementsAre(1, 2));
  EXPECT_EQ(batch.end().steps(), 10u);
}

TEST_F(EventCollectorTest, SamplesTheSameStepsFromAnyPosition) {
  for (int step = 0; step < 6; ++step) Append(StepLine(step) + "\n");
  v1::Position position;
  position.set_offset(StepLine(0).size() + 1);
  position.set_steps(1);
  EventCollector collector = Open(position, /*step_stride=*/2);
  EXPECT_THAT(NumbersOf(NextOf(&collector).steps()), ElementsAre(3, 5));
}

TEST_F(EventCollectorTest, PutsABoundedPieceOfTheOutputIntoABatch) {
  const std::string line = StepLine(7) + "\n";
  const size_t lines = 3 * EventCollector::kBatchBytes / line.size();
  std::string output;
  for (size_t i = 0; i < lines; ++i) output += line;
  Append(output);
  EventCollector collector = Open();
  uint64_t number = 0;
  v1::Position end;
  for (v1::EventBatch batch = NextOf(&collector);; batch = NextOf(&collector)) {
    EXPECT_LE(batch.end().offset() - batch.begin().offset(),
              EventCollector::kBatchBytes);
    EXPECT_TRUE(MessageDifferencer::Equals(batch.begin(), end));
    for (const auto& step : batch.steps()) EXPECT_EQ(step.seq_id(), ++number);
    end = batch.end();
    if (end.offset() == output.size()) break;
    EXPECT_GT(batch.end().offset() - batch.begin().offset(),
              EventCollector::kBatchBytes - line.size());
  }
  EXPECT_EQ(number, lines);
}

TEST_F(EventCollectorTest, PutsALargeLineIntoABatchOfItsOwn) {
  const std::string large =
      StepLine(1).substr(0, StepLine(1).size() - 1) + ",\"observation\":\"" +
      std::string(EventCollector::kBatchBytes, 'x') + "\"}\n";
  Append(StepLine(0) + "\n" + large + StepLine(2) + "\n");
  EventCollector collector = Open();
  for (uint64_t number = 1; number <= 3; ++number) {
    EXPECT_THAT(NumbersOf(NextOf(&collector).steps()), ElementsAre(number));
  }
  EXPECT_TRUE(HasNone(&collector));
}

TEST_F(EventCollectorTest, BoundsABatchOfMalformedLines) {
  std::string output;
  for (size_t i = 0; i < EventCollector::kBatchBytes; ++i) output += "{\n";
  Append(output);
  EventCollector collector = Open();
  EXPECT_LT(NextOf(&collector).ByteSizeLong(), 2 * EventCollector::kBatchBytes);
}

TEST_F(EventCollectorTest, TakesAnOversizedLineAsMalformed) {
  const std::string rest(LineTail::kMaxLineBytes, 'x');
  Append(" {" + rest + "\nt" + rest + "\n" + StepLine(0) + "\n");
  EventCollector collector = Open();
  const v1::EventBatch event = NextOf(&collector);
  ASSERT_EQ(event.malformed_size(), 1);
  EXPECT_EQ(event.malformed(0).length(), rest.size() + 2);
  EXPECT_THAT(event.malformed(0).reason(), HasSubstr("at most 16777216 bytes"));
  EXPECT_EQ(event.malformed(0).head().size(), EventCollector::kHeadBytes);
  EXPECT_EQ(NextOf(&collector).end().text_lines(), 1u);
  EXPECT_EQ(NextOf(&collector).steps_size(), 1);
}

TEST_F(EventCollectorTest, TakesAnEventThatLacksOnlyItsNewline) {
  Append(StepLine(0));
  EventCollector collector = Open();
  EXPECT_TRUE(HasNone(&collector));
  collector.Finish();
  EXPECT_EQ(NextOf(&collector).steps_size(), 1);
  EXPECT_TRUE(HasNone(&collector));
}

TEST_F(EventCollectorTest, TakesAHalfLineAsMalformed) {
  Append(StepLine(0).substr(0, 20));
  EventCollector collector = Open();
  collector.Finish();
  const v1::EventBatch batch = NextOf(&collector);
  ASSERT_EQ(batch.malformed_size(), 1);
  EXPECT_EQ(batch.malformed(0).length(), 20u);
  EXPECT_THAT(batch.malformed(0).reason(), HasSubstr("within this line"));
}

TEST_F(EventCollectorTest, ReturnsCollectedEventsBeforeAnError) {
  Append(StepLine(0) + "\n" + StepLine(1) + "\n");
  EventCollector collector = Open();
  NextOf(&collector);
  Append(StepLine(2) + "\n{");
  EXPECT_EQ(NextOf(&collector).steps_size(), 1);
  ASSERT_EQ(truncate(path().c_str(), 3), 0);
  v1::EventBatch batch;
  EXPECT_EQ(collector.Collect(&batch).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(collector.position().steps(), 3u);
}

TEST_F(EventCollectorTest, FailsWithoutItsFile) {
  EXPECT_EQ(EventCollector::Open(path() + "_none", {}, 1).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(EventCollectorTest, RepeatsABatchFromItsPosition) {
  Append(StepLine(0) + "\n");
  EventCollector collector = Open();
  v1::EventBatch batch;
  ASSERT_TRUE(*collector.Collect(&batch));
  Append(StepLine(1) + "\n");
  batch.Clear();
  ASSERT_TRUE(*collector.Collect(&batch));
  EXPECT_THAT(NumbersOf(batch.steps()), ElementsAre(2));
}

}  // namespace
}  // namespace tandem::slow_lane
