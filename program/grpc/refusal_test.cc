#include "program/grpc/refusal.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

using std::literals::string_literals::operator""s;

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string kSettings = "\0\0\0\4\0\0\0\0\0"s;
const std::string kSettingsAck = "\0\0\0\4\1\0\0\0\0"s;
const std::string kCall1 = "\0\0\3\1\4\0\0\0\1xyz"s;
const std::string kCall3 = "\0\0\3\1\5\0\0\0\3xyz"s;
const std::string kData1 = "\0\0\4\0\1\0\0\0\1\0\0\3\1"s;  // like a header
const std::string kPing = "\0\0\10\6\0\0\0\0\0pingpong"s;
const std::string kPingAck = "\0\0\10\6\1\0\0\0\0pingpong"s;

// A frame that ends the call `stream` with status 200 and these fields.
std::string CallEnd(char stream, absl::string_view message) {
  const std::string payload = absl::StrCat(
      "\x20\x88\0\x0c"
      "content-type\x10"
      "application/grpc\0\x0b"
      "grpc-status\1"
      "7\0\x0c"
      "grpc-message"s,
      std::string(1, static_cast<char>(message.size())), message);
  return "\0\0"s + static_cast<char>(payload.size()) + "\1\5\0\0\0"s + stream +
         payload;
}

TEST(Refusal, EndsEachCallWithTheText) {
  Refusal refusal("no");
  EXPECT_EQ(refusal.Answer(kPreface + kSettings + kCall1 + kData1 + kCall3),
            kSettings + kSettingsAck + CallEnd(1, "no") + CallEnd(3, "no"));
}

TEST(Refusal, AnswersTheSameByteByByte) {
  Refusal refusal("no");
  std::string answers;
  for (const char byte : kPreface + kSettings + kPing + kCall1 + kSettingsAck +
                             kPingAck + kData1 + kCall3) {
    const std::optional<std::string> answer =
        refusal.Answer(absl::string_view(&byte, 1));
    ASSERT_TRUE(answer.has_value());
    answers += *answer;
  }
  EXPECT_EQ(answers, kSettings + kSettingsAck + kPingAck + CallEnd(1, "no") +
                         CallEnd(3, "no"));
}

TEST(Refusal, EndsACallOnce) {
  Refusal refusal("no");
  ASSERT_TRUE(refusal.Answer(kPreface + kCall1).has_value());
  EXPECT_EQ(refusal.Answer(kCall1), "");  // the client's trailers
}

TEST(Refusal, EncodesTextForHeaders) {
  Refusal refusal("50 %\n\xc3\xa4");
  EXPECT_EQ(refusal.Answer(kPreface + kCall1),
            kSettings + CallEnd(1, "50 %25%0A%C3%A4"));
}

TEST(Refusal, EncodesTheLengthOfALongText) {
  Refusal refusal(std::string(400, 'x'));
  const std::optional<std::string> answer = refusal.Answer(kPreface + kCall1);
  ASSERT_TRUE(answer.has_value());
  // 127 + 17 + 2 * 128
  EXPECT_NE(answer->find("grpc-message\x7f\x91\x02xxx"), std::string::npos);
}

TEST(Refusal, DisconnectsClientsWithoutHttp2) {
  Refusal refusal("no");
  EXPECT_EQ(refusal.Answer("PRI * H"), "");
  EXPECT_EQ(refusal.Answer("TTP/1.1"), std::nullopt);
}

TEST(Refusal, DisconnectsAClientThatSendsTooMuch) {
  Refusal refusal("no");
  ASSERT_TRUE(refusal.Answer(kPreface).has_value());
  EXPECT_EQ(refusal.Answer(std::string(Refusal::kMostBytes, '\0')),
            std::nullopt);
}

}  // namespace
}  // namespace tandem
