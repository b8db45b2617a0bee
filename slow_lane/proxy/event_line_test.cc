#include "slow_lane/proxy/event_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem::slow_lane {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The result for one line.
struct Parsed {
  LineKind kind;
  std::string reason;
  v1::EventBatch batch;

  const gymgui::trainer::RunStep& step() const { return batch.steps(0); }
  const gymgui::trainer::RunEpisode& episode() const {
    return batch.episodes(0);
  }
  const v1::LifecycleEvent& lifecycle() const { return batch.lifecycle(0); }
};

Parsed ParseLine(const std::string& line) {
  EventLineParser parser;
  Parsed parsed;
  // The bytes after the line must have no effect.
  const std::string padded =
      line + std::string(EventLineParser::kPaddingBytes, '1');
  parsed.kind = parser.Parse(absl::string_view(padded).substr(0, line.size()),
                             &parsed.batch);
  parsed.reason = parser.reason();
  const int messages = parsed.batch.steps_size() +
                       parsed.batch.episodes_size() +
                       parsed.batch.lifecycle_size();
  const bool event =
      parsed.kind != LineKind::kText && parsed.kind != LineKind::kMalformed;
  EXPECT_EQ(messages, event ? 1 : 0) << line;
  EXPECT_EQ(parsed.reason.empty(), parsed.kind != LineKind::kMalformed);
  return parsed;
}

std::string ReasonOf(const std::string& line) {
  const Parsed parsed = ParseLine(line);
  EXPECT_EQ(parsed.kind, LineKind::kMalformed) << line;
  return parsed.reason;
}

// A complete step, with `fields` at its end.
std::string Step(const std::string& fields) {
  return absl::StrCat(
      R"({"event_type": "step", "episode": 1, "step_index": 2, "reward": 3.5)",
      fields.empty() ? "" : ", ", fields, "}");
}

TEST(EventLine, ReadsTheSeedsStep) {
  const Parsed parsed = ParseLine(
      R"({"event_type": "step", "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", )"
      R"("episode": 0, "step_index": 42, "action": 1, )"
      R"("observation": [0.02, -0.01, 0.03, -0.02], "reward": 1.0, )"
      R"("terminated": false, "truncated": false})");
  ASSERT_EQ(parsed.kind, LineKind::kStep) << parsed.reason;
  EXPECT_EQ(parsed.step().episode_index(), 0u);
  EXPECT_EQ(parsed.step().step_index(), 42u);
  EXPECT_EQ(parsed.step().action_json(), "1");
  EXPECT_EQ(parsed.step().observation_json(), "[0.02, -0.01, 0.03, -0.02]");
  EXPECT_EQ(parsed.step().reward(), 1.0);
  EXPECT_FALSE(parsed.step().terminated());
  EXPECT_FALSE(parsed.step().has_timestamp());
  EXPECT_EQ(parsed.step().run_id(), "");
}

TEST(EventLine, ReadsTheSeedsEpisode) {
  const Parsed parsed = ParseLine(
      R"({"event_type": "episode", "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", )"
      R"("episode": 0, "total_reward": 195.0, "steps": 195, )"
      R"("terminated": true, "truncated": false})");
  ASSERT_EQ(parsed.kind, LineKind::kEpisode) << parsed.reason;
  EXPECT_EQ(parsed.episode().total_reward(), 195.0);
  EXPECT_EQ(parsed.episode().steps(), 195u);
  EXPECT_TRUE(parsed.episode().terminated());
  EXPECT_FALSE(parsed.episode().truncated());
}

TEST(EventLine, ReadsTheSeedsLifecycleEvent) {
  const Parsed parsed = ParseLine(
      R"({"event": "run_started", "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", )"
      R"("payload": {"worker_id": "worker-001", "algo": "ppo"}})");
  ASSERT_EQ(parsed.kind, LineKind::kLifecycle) << parsed.reason;
  EXPECT_EQ(parsed.lifecycle().event(), "run_started");
  EXPECT_EQ(parsed.lifecycle().payload_json(),
            R"({"worker_id": "worker-001", "algo": "ppo"})");
}

TEST(EventLine, ReadsEveryFieldOfAStep) {
  const Parsed parsed = ParseLine(
      R"({"type":"STEP","episode_index":7,"step_index":8,"reward":-0.25,)"
      R"("action_json":"[1,2]","observation_json":{"a":[{}]},)"
      R"("render_hint_json":"{\"x\":\"\\u00e9\"}","render_payload":"p\"q",)"
      R"("terminated":true,"truncated":true,"policy_label":"\u00e9\n",)"
      R"("backend":"b","agent_id":"a","frame_ref":"f","worker_id":"w",)"
      R"("payload_version":4294967295,"episode_seed":18446744073709551615,)"
      R"("ts_unix_ns":1700000000123456789,"schema_version":1})");
  ASSERT_EQ(parsed.kind, LineKind::kStep) << parsed.reason;
  const gymgui::trainer::RunStep& step = parsed.step();
  EXPECT_EQ(step.episode_index(), 7u);
  EXPECT_EQ(step.step_index(), 8u);
  EXPECT_EQ(step.reward(), -0.25);
  EXPECT_EQ(step.action_json(), "[1,2]");
  EXPECT_EQ(step.observation_json(), R"({"a":[{}]})");
  EXPECT_EQ(step.render_hint_json(), R"({"x":"\u00e9"})");
  EXPECT_EQ(step.render_payload_json(), R"("p\"q")");
  EXPECT_TRUE(step.terminated());
  EXPECT_TRUE(step.truncated());
  EXPECT_EQ(step.policy_label(), "\u00e9\n");
  EXPECT_EQ(step.backend(), "b");
  EXPECT_EQ(step.agent_id(), "a");
  EXPECT_EQ(step.frame_ref(), "f");
  EXPECT_EQ(step.worker_id(), "w");
  EXPECT_EQ(step.payload_version(), 4294967295u);
  EXPECT_EQ(step.episode_seed(), 18446744073709551615u);
  EXPECT_EQ(step.timestamp().seconds(), 1700000000);
  EXPECT_EQ(step.timestamp().nanos(), 123456789);
}

TEST(EventLine, ReadsEveryFieldOfAnEpisode) {
  const Parsed parsed =
      ParseLine(R"({"type":"Episode","episode":3,"reward":"NaN","steps":5,)"
                R"("truncated":true,"metadata":{"episode_index":9,"k":[1, 2]},)"
                R"("agent_id":"a","worker_id":"w","ts_unix_ns":"1000000001"})");
  ASSERT_EQ(parsed.kind, LineKind::kEpisode) << parsed.reason;
  EXPECT_EQ(parsed.episode().episode_index(), 9u);
  EXPECT_TRUE(std::isnan(parsed.episode().total_reward()));
  EXPECT_EQ(parsed.episode().steps(), 5u);
  EXPECT_TRUE(parsed.episode().truncated());
  EXPECT_EQ(parsed.episode().metadata_json(),
            R"({"episode_index":9,"k":[1, 2]})");
  EXPECT_EQ(parsed.episode().agent_id(), "a");
  EXPECT_EQ(parsed.episode().worker_id(), "w");
  EXPECT_EQ(parsed.episode().timestamp().seconds(), 1);
  EXPECT_EQ(parsed.episode().timestamp().nanos(), 1);
}

TEST(EventLine, ReadsALifecycleEventsTime) {
  const Parsed seconds =
      ParseLine(R"({"event":"heartbeat","timestamp":1704067200.5})");
  ASSERT_EQ(seconds.kind, LineKind::kLifecycle) << seconds.reason;
  EXPECT_EQ(seconds.lifecycle().timestamp().seconds(), 1704067200);
  EXPECT_EQ(seconds.lifecycle().timestamp().nanos(), 500000000);
  EXPECT_EQ(seconds.lifecycle().payload_json(), "");
  const Parsed both = ParseLine(
      R"({"event":"x","timestamp":1.5,"ts_unix_ns":7,"worker_id":"w"})");
  EXPECT_EQ(both.lifecycle().timestamp().seconds(), 0);
  EXPECT_EQ(both.lifecycle().timestamp().nanos(), 7);
  EXPECT_EQ(both.lifecycle().worker_id(), "w");
}

TEST(EventLine, PrefersTheMetadatasEpisodeIndex) {
  const auto index = [](const std::string& fields) {
    const Parsed parsed = ParseLine(
        absl::StrCat(R"({"type":"step","step":1,"reward":0,)", fields, "}"));
    EXPECT_EQ(parsed.kind, LineKind::kStep) << parsed.reason;
    return parsed.kind == LineKind::kStep ? parsed.step().episode_index() : ~0u;
  };
  EXPECT_EQ(index(R"("episode":5)"), 5u);
  EXPECT_EQ(index(R"("episode":5,"episode_index":6)"), 6u);
  EXPECT_EQ(index(R"("episode":5,"metadata":{"episode_index":7})"), 7u);
  EXPECT_EQ(index(R"("episode":5,"metadata_json":{"episode_index":7})"), 7u);
  EXPECT_EQ(index(R"("metadata_json":"{\"episode_index\":8}")"), 8u);
  EXPECT_EQ(index(R"("episode":5,"metadata_json":"{}","metadata":{})"), 5u);
  EXPECT_EQ(index(R"("episode":5,"metadata_json":"")"), 5u);
}

TEST(EventLine, PrefersTheLongerOfTwoNames) {
  const Parsed parsed = ParseLine(Step(
      R"("step":9,"action_json":null,"action":{"b": 1},"observation_json":"x",)"
      R"("observation":[1])"));
  EXPECT_EQ(parsed.step().step_index(), 2u);
  EXPECT_EQ(parsed.step().action_json(), R"({"b": 1})");
  EXPECT_EQ(parsed.step().observation_json(), "x");
}

TEST(EventLine, TakesNullForAMissingField) {
  const Parsed parsed = ParseLine(
      Step(R"("agent_id":null,"truncated":null,"episode_seed":null,)"
           R"("render_payload":null,"metadata":null,"schema_version":null)"));
  ASSERT_EQ(parsed.kind, LineKind::kStep) << parsed.reason;
  EXPECT_EQ(parsed.step().render_payload_json(), "");
  EXPECT_THAT(ReasonOf(R"({"type":"step","episode":1,"step":1,"reward":null})"),
              HasSubstr("reward is required"));
}

TEST(EventLine, TakesAnIntegerWithAFraction) {
  EXPECT_EQ(ParseLine(Step(R"("episode_seed":12.0)")).step().episode_seed(),
            12u);
  EXPECT_EQ(ParseLine(Step(R"("episode_seed":-0.0)")).step().episode_seed(),
            0u);
  EXPECT_EQ(
      ParseLine(Step(R"("ts_unix_ns":1.7e18)")).step().timestamp().seconds(),
      1'700'000'000);
}

TEST(EventLine, IgnoresUnknownFields) {
  EXPECT_EQ(
      ParseLine(Step(R"("loss":[1,{"reward":"x"}],"loss":2,"":null)")).kind,
      LineKind::kStep);
}

TEST(EventLine, CountsOtherLinesAsText) {
  for (const std::string text :
       {"", " ", "\r", "\t\r", "[1]", "step {", "\"type\"", "\xEF\xBB\xBF{}"}) {
    EXPECT_EQ(ParseLine(text).kind, LineKind::kText) << text;
    EXPECT_FALSE(IsMeantAsEvent(text)) << text;
  }
  EXPECT_EQ(ParseLine(std::string("\0{}", 3)).kind, LineKind::kText);
  EXPECT_TRUE(IsMeantAsEvent(" \t\r{"));
}

TEST(EventLine, TakesBlanksAroundAnEvent) {
  EXPECT_EQ(ParseLine(" \t" + Step("") + " \r").kind, LineKind::kStep);
}

TEST(EventLine, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(ReasonOf(Step(R"("reward":1)")),
              AllOf(HasSubstr("reward"), HasSubstr("twice")));
  EXPECT_THAT(ReasonOf(Step(R"("rew\u0061rd":1)")),
              AllOf(HasSubstr("reward"), HasSubstr("twice")));
  EXPECT_THAT(ReasonOf(Step(R"("step":-1)")),
              AllOf(HasSubstr("step: "), HasSubstr("0 .. "), HasSubstr("-1")));
  EXPECT_THAT(ReasonOf(Step(R"("terminated":1)")),
              AllOf(HasSubstr("terminated: "), HasSubstr("found 1")));
  EXPECT_THAT(ReasonOf(Step(R"("agent_id":[1, "x"])")),
              AllOf(HasSubstr("agent_id: "), HasSubstr(R"([1, "x"])")));
  EXPECT_THAT(ReasonOf(Step(R"("payload_version":4294967296)")),
              AllOf(HasSubstr("payload_version: "), HasSubstr("4294967295")));
  EXPECT_THAT(
      ReasonOf(Step(R"("schema_version":2)")),
      AllOf(HasSubstr("schema_version: expected 1"), HasSubstr("found 2")));
  EXPECT_THAT(ReasonOf(Step(R"("ts_unix_ns":"1e9")")),
              HasSubstr("ts_unix_ns: "));
  EXPECT_THAT(ReasonOf(Step(R"("metadata":{"episode_index":"x"})")),
              HasSubstr("metadata: "));
  EXPECT_THAT(
      ReasonOf(Step(R"("metadata":{"episode_index":1,"episode_index":1})")),
      AllOf(HasSubstr("metadata: "), HasSubstr("twice")));
  EXPECT_THAT(ReasonOf(Step(R"("metadata_json":"{")")),
              HasSubstr("metadata_json: "));
  EXPECT_THAT(ReasonOf(R"({"type":"step","step":1,"reward":1})"),
              HasSubstr("episode_index or episode is required"));
  EXPECT_THAT(ReasonOf(R"({"type":"step","episode":1,"reward":1})"),
              HasSubstr("step_index or step is required"));
  EXPECT_THAT(ReasonOf(R"({"type":"episode","episode":1,"steps":1})"),
              HasSubstr("total_reward or reward is required"));
  EXPECT_THAT(ReasonOf(R"({"type":"episode","episode":1,"reward":1})"),
              HasSubstr("steps is required"));
  EXPECT_THAT(ReasonOf(R"({"event":"x","payload":[]})"),
              HasSubstr("payload: expected an object"));
  EXPECT_THAT(ReasonOf(R"({"event":""})"), HasSubstr("event: "));
  EXPECT_THAT(ReasonOf(R"({"event":"x","timestamp":"2024"})"),
              HasSubstr("timestamp: "));
}

TEST(EventLine, NamesTheKindThatIsWrong) {
  EXPECT_THAT(ReasonOf("{}"), HasSubstr("event_type"));
  EXPECT_THAT(ReasonOf(R"({"type":"init"})"),
              AllOf(HasSubstr("type: "), HasSubstr("\"init\"")));
  EXPECT_THAT(ReasonOf(R"({"type":3,"event":"x"})"), HasSubstr("type: "));
  EXPECT_THAT(ReasonOf(Step(R"("type":"episode")")),
              AllOf(HasSubstr("type: "), HasSubstr("event_type")));
  EXPECT_EQ(ParseLine(Step(R"("type":"Step","event":3)")).kind,
            LineKind::kStep);
}

TEST(EventLine, NamesTheTextForNumbersThatJsonLacks) {
  const std::string begin =
      R"({"type":"step","episode":1,"step":1,"observation":[1,2],"reward":)";
  for (const std::string number : {"NaN", "Infinity", "-Infinity"}) {
    EXPECT_THAT(ReasonOf(begin + number + "}"),
                AllOf(HasSubstr(absl::StrCat("at byte ", begin.size())),
                      HasSubstr(absl::StrCat("found ", number, ",")),
                      HasSubstr(absl::StrCat("\"", number, "\""))));
    EXPECT_EQ(ParseLine(begin + "\"" + number + "\"}").kind, LineKind::kStep);
  }
}

TEST(EventLine, NamesTheByteAtWhichALineIsNoJson) {
  EXPECT_THAT(ReasonOf("{'loss': 1}"),
              AllOf(HasSubstr("byte 1 "), HasSubstr("'loss'")));
  EXPECT_THAT(ReasonOf(R"({"type":"step")"), HasSubstr("the line's end"));
  EXPECT_THAT(ReasonOf("{"), HasSubstr("the line's end"));
  EXPECT_THAT(ReasonOf(R"({"type":"st)"), HasSubstr("the line's end"));
  EXPECT_THAT(ReasonOf(Step("") + " x"), HasSubstr("found x"));
  EXPECT_THAT(ReasonOf(Step("") + Step("")), HasSubstr("found {"));
  EXPECT_THAT(ReasonOf(Step("\"a\":\"\xff\"")), HasSubstr("\\xff"));
  EXPECT_THAT(ReasonOf(Step(R"("a":1e400)")), HasSubstr("JSON: "));
  EXPECT_THAT(ReasonOf(Step(R"("a":18446744073709551616)")),
              HasSubstr("JSON: "));
  EXPECT_THAT(ReasonOf(Step(R"("a":"\ud800")")), HasSubstr("JSON: "));
  EXPECT_THAT(ReasonOf(std::string("{\0}", 3)), HasSubstr("\\x00"));
}

TEST(EventLine, TakesNestingUpToItsLimit) {
  const auto nested = [](size_t levels) {
    return Step(absl::StrCat("\"a\":", std::string(levels, '['), "1",
                             std::string(levels, ']')));
  };
  EXPECT_EQ(ParseLine(nested(EventLineParser::kMaxDepth - 1)).kind,
            LineKind::kStep);
  EXPECT_THAT(ReasonOf(nested(EventLineParser::kMaxDepth)),
              HasSubstr("at most 64 deep"));
}

TEST(EventLine, KeepsReasonsShortAndPrintable) {
  const std::string reason =
      ReasonOf(Step("\"agent_id\":[\"" + std::string(100'000, 'x') + "\"]"));
  EXPECT_LT(reason.size(), 400u);
  EXPECT_THAT(ReasonOf("{\x01" + std::string(100'000, '\x02')),
              AllOf(HasSubstr("\\x01"), testing::SizeIs(testing::Lt(400u))));
}

TEST(EventLine, ReadsLinesOfTheLargestSize) {
  const std::string line =
      Step("\"render_payload\":\"" + std::string(16 << 20, 'x') + "\"");
  const Parsed parsed = ParseLine(line);
  ASSERT_EQ(parsed.kind, LineKind::kStep) << parsed.reason;
  EXPECT_EQ(parsed.step().render_payload_json().size(), (16u << 20) + 2);
}

TEST(EventLine, ReadsOneLineAfterAnother) {
  EventLineParser parser;
  v1::EventBatch batch;
  const std::string padding(EventLineParser::kPaddingBytes, ' ');
  const auto parse = [&](const std::string& line) {
    const std::string padded = line + padding;
    return parser.Parse(absl::string_view(padded).substr(0, line.size()),
                        &batch);
  };
  EXPECT_EQ(parse(Step(R"("agent_id":"a")")), LineKind::kStep);
  EXPECT_EQ(parse("{"), LineKind::kMalformed);
  EXPECT_NE(parser.reason(), "");
  EXPECT_EQ(parse(Step(R"("agent_id":"b","truncated":1)")),
            LineKind::kMalformed);
  EXPECT_EQ(parse(Step("")), LineKind::kStep);
  EXPECT_EQ(parser.reason(), "");
  ASSERT_EQ(batch.steps_size(), 2);
  EXPECT_EQ(batch.steps(0).agent_id(), "a");
  EXPECT_EQ(batch.steps(1).agent_id(), "");
  EventLineParser moved = std::move(parser);
  EXPECT_EQ(moved.Parse("", &batch), LineKind::kText);
}

}  // namespace
}  // namespace tandem::slow_lane
