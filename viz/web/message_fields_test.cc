#include "viz/web/message_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tandem {
namespace {

TEST(MessageFields, ReadsFieldsOfTheirTypes) {
  MessageFields fields(R"({"i": 7, "t": "x", "b": true, "n": 0.5})");
  EXPECT_EQ(fields.Integer("i", 0, 7), 7);
  EXPECT_EQ(fields.IntegerIfThere("i", 0, 7), 7);
  EXPECT_EQ(fields.Text("t"), "x");
  EXPECT_TRUE(fields.Bool("b"));
  EXPECT_EQ(fields.NumberIfThere("n", 1), 0.5);
  EXPECT_EQ(fields.IntegerIfThere("absent", 0, 7), std::nullopt);
  EXPECT_EQ(fields.TextIfThere("absent"), "");
  EXPECT_EQ(fields.NumberIfThere("absent", 1), 1);
  EXPECT_FALSE(fields.BoolIfThere("absent"));
  EXPECT_TRUE(fields.ok());
}

TEST(MessageFields, ReadsListsOfIntegersUpToTheirLength) {
  constexpr char kText[] =
      R"({"l": [3, 0, 4294967295], "n": [-1], "f": [0.5], "t": ["1"],)"
      R"( "b": [4294967296], "i": 1})";
  const auto read = [&](const char* name, size_t count) {
    MessageFields fields(kText);
    const std::vector<uint32_t> found = fields.IntegersIfThere(name, count);
    return std::pair(found, fields.ok());
  };
  EXPECT_EQ(read("l", 3), std::pair(std::vector{3U, 0U, 4294967295U}, true));
  EXPECT_EQ(read("absent", 3), std::pair(std::vector<uint32_t>(), true));
  EXPECT_FALSE(read("l", 2).second);
  for (const char* const name : {"n", "f", "t", "b", "i"}) {
    EXPECT_FALSE(read(name, 3).second) << name;
  }
}

TEST(MessageFields, RefusesOtherTypesAndValuesOutOfRange) {
  constexpr char kText[] =
      R"({"i": 18446744073709551615, "f": 1.5, "t": "long", "b": 1})";
  const auto refuses = [&](auto read) {
    MessageFields fields(kText);
    EXPECT_TRUE(fields.ok());
    read(fields);
    return !fields.ok();
  };
  using F = MessageFields;
  EXPECT_TRUE(refuses([](F& f) { f.Integer("i", 0, 100); }));
  EXPECT_TRUE(refuses([](F& f) { f.Integer("f", 0, 100); }));
  EXPECT_TRUE(refuses([](F& f) { f.Integer("absent", 0, 100); }));
  EXPECT_TRUE(refuses([](F& f) { f.IntegerIfThere("t", 0, 100); }));
  EXPECT_TRUE(refuses([](F& f) { f.Text("f"); }));
  EXPECT_TRUE(refuses([](F& f) { f.Text("t", 3); }));
  EXPECT_TRUE(refuses([](F& f) { f.Bool("b"); }));
  EXPECT_TRUE(refuses([](F& f) { f.NumberIfThere("t", 1); }));
}

TEST(MessageFields, RefusesWhatIsNoObject) {
  for (const char* const text : {"", "[]", "7", "{", "\xff", "null"}) {
    MessageFields fields(text);
    EXPECT_FALSE(fields.ok()) << text;
    EXPECT_EQ(fields.Text("do"), "");
  }
}

}  // namespace
}  // namespace tandem
