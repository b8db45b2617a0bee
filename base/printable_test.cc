#include "base/printable.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"
#include "utf8cpp/utf8.h"

namespace tandem {
namespace {

// client_py/tandem/printable_test.py reads the same table.
TEST(Printable, EscapesEachSampleOfTheTable) {
  std::ifstream file("base/testdata/printable.json");
  const nlohmann::json samples = nlohmann::json::parse(file);
  ASSERT_GT(samples.size(), 20u);
  for (const nlohmann::json& sample : samples) {
    const std::string text =
        absl::HexStringToBytes(sample.at("bytes").get<std::string>());
    const auto printable = sample.at("printable").get<std::string>();
    EXPECT_EQ(Printable(text), printable) << sample;
    EXPECT_EQ(Printable(printable), printable) << sample;
    EXPECT_TRUE(utf8::is_valid(printable.begin(), printable.end())) << sample;
  }
}

TEST(Printable, LinesStayInTextsOfLines) {
  EXPECT_EQ(PrintableLines("a\n\tb\r\x1b\u2028"),
            "a\n\tb\\x0d\\x1b\\xe2\\x80\\xa8");
}

TEST(PrintableHead, KeepsUtf8) {
  const std::string text = "a \"b\" \\ \u00e9 \u20ac \U0001F600";
  EXPECT_EQ(PrintableHead(text, 100), text);
  EXPECT_EQ(PrintableHead("", 100), "");
}

TEST(PrintableHead, KeepsTheFirstAndLastCharactersOfEachLength) {
  // Includes the characters next to the surrogates.
  const absl::string_view text =
      " ~ \u00a0\u07ff \u0800\ud7ff \ue000\uffff \U00010000\U0010ffff";
  EXPECT_EQ(PrintableHead(text, 100), text);
}

TEST(PrintableHead, SpellsControlCharacters) {
  EXPECT_EQ(PrintableHead(absl::string_view("a\0\t\r\x7F\x1B[", 7), 100),
            "a\\x00\\x09\\x0d\\x7f\\x1b[");
  EXPECT_EQ(PrintableHead("\u0085", 100), "\\xc2\\x85");
}

TEST(PrintableHead, EscapesInvalidUtf8) {
  EXPECT_EQ(PrintableHead("\xFF\x80", 100), "\\xff\\x80");
  // Truncated, overlong, a surrogate, beyond Unicode.
  EXPECT_EQ(PrintableHead("\xE2\x82", 100), "\\xe2\\x82");
  EXPECT_EQ(PrintableHead("\xC1\xBF", 100), "\\xc1\\xbf");
  EXPECT_EQ(PrintableHead("\xE0\x9F\xBF", 100), "\\xe0\\x9f\\xbf");
  EXPECT_EQ(PrintableHead("\xED\xA0\x80", 100), "\\xed\\xa0\\x80");
  EXPECT_EQ(PrintableHead("\xF4\x90\x80\x80", 100), "\\xf4\\x90\\x80\\x80");
}

TEST(PrintableHead, CutsBetweenCharacters) {
  EXPECT_EQ(PrintableHead("abc", 2), "ab");
  EXPECT_EQ(PrintableHead("a\u20ac", 3), "a");
  EXPECT_EQ(PrintableHead("a\u20ac", 4), "a\u20ac");
  EXPECT_EQ(PrintableHead("ab\xFF", 5), "ab");
  EXPECT_EQ(PrintableHead("ab", 0), "");
  EXPECT_EQ(PrintableHead("a\u202e", 12), "a");
  EXPECT_EQ(PrintableHead("a\u202e", 13), "a\\xe2\\x80\\xae");
}

}  // namespace
}  // namespace tandem
