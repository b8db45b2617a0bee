#include "schema/messages/testing/additions_only.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "flatbuffers/idl.h"

namespace tandem {
namespace {

// Version 1, until it is released.
constexpr char kVersion1[] = "schema/messages/hazel_rpc.fbs";

std::string Read(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Returns NotAdditions() of two texts, one problem a line.
std::string Compare(const std::string& older_text,
                    const std::string& newer_text) {
  flatbuffers::Parser older, newer;
  EXPECT_TRUE(older.Parse(older_text.c_str())) << older.error_;
  EXPECT_TRUE(newer.Parse(newer_text.c_str())) << newer.error_;
  return absl::StrJoin(NotAdditions(older, newer), "\n");
}

// Returns version 1 with one change.
std::string Changed(const std::string& from, const std::string& to) {
  std::string text = Read(kVersion1);
  EXPECT_GE(absl::StrReplaceAll({{from, to}}, &text), 1) << from;
  return text;
}

struct Change {
  const char* what;
  std::string from, to;
  const char* problem;  // a part of the expected text
};

class NotAdditionsOf : public testing::TestWithParam<Change> {};

TEST_P(NotAdditionsOf, RefusesVersion1) {
  const Change& change = GetParam();
  const std::string problems =
      Compare(Read(kVersion1), Changed(change.from, change.to));
  EXPECT_TRUE(absl::StrContains(problems, change.problem))
      << "found: " << problems;
}

INSTANTIATE_TEST_SUITE_P(
    , NotAdditionsOf,
    testing::Values(
        Change{"FieldMoved",
               "  total_bytes: ulong (id: 2);\n"
               "  /// This piece's bytes.\n  data: [ubyte] (id: 3);",
               "  total_bytes: ulong (id: 3);\n  data: [ubyte] (id: 2);",
               "offsets differ for field: "},
        Change{"LastFieldRemoved", "  end_of_stream: bool (id: 8);\n", "",
               "tandem.rpc.Envelope.end_of_stream was removed"},
        Change{"FieldRenamed", "dropped: ulong", "lost: ulong",
               "tandem.rpc.Envelope.dropped was removed or renamed"},
        Change{"FieldDeprecated", "dropped: ulong (id: 7)",
               "dropped: ulong (id: 7, deprecated)",
               "tandem.rpc.Envelope.dropped was deprecated"},
        Change{"FieldOfAnotherType", "error_code: ushort", "error_code: uint",
               "types differ for field: error_code"},
        Change{"FieldOfAnotherDefault", "steps: uint = 1", "steps: uint = 2",
               "defaults differ for field: steps"},
        Change{"NullTakenAway", "seed: ulong = null", "seed: ulong",
               "ResetAgentRequest.seed"},
        Change{"FieldMadeRequired", "entity: EntityInfo (id: 1)",
               "entity: EntityInfo (id: 1, required)",
               "GetEntityResponse.entity changed whether"},
        Change{"RequiredFieldAdded", "entity: EntityInfo (id: 1)",
               "entity: EntityInfo (id: 1); why: string (id: 2, required)",
               "GetEntityResponse.why is new and required"},
        Change{"StructGrown", "  w: float;\n", "  w: float;\n  v: float;\n",
               "tandem.rpc.Quat grew"},
        Change{"StructShrunk", "  w: float;\n", "",
               "tandem.rpc.Quat.w was removed"},
        Change{"StructMadeTable",
               "struct Quat {\n  x: float;\n  y: float;\n  z: float;\n"
               "  w: float;\n",
               "table Quat {\n  x: float (id: 0);\n  y: float (id: 1);\n"
               "  z: float (id: 2);\n  w: float (id: 3);\n",
               "tandem.rpc.Quat is a struct on one side"},
        Change{"TableRenamed", "ServiceInfo", "Service",
               "tandem.rpc.ServiceInfo was removed or renamed"},
        Change{"MethodRenumbered", "GetServices = 241", "GetServices = 242",
               "values differ for enum: GetServices"},
        Change{"MethodRemoved", "  Draw = 96,\n", "",
               "tandem.rpc.MethodId.Draw was removed"},
        Change{"EnumNarrowed", "enum MethodId : ushort",
               "enum MethodId : ubyte", "tandem.rpc.MethodId changed its type"},
        Change{"PayloadRenumbered", "  Fragment = 1,", "  Fragment = 12,",
               "values differ for enum: Fragment"},
        Change{"PayloadRemoved", "  Fragment = 1,\n", "",
               "tandem.rpc.Payload.Fragment was removed"},
        Change{"AnotherRoot", "root_type Envelope", "root_type Fragment",
               "the root type changed"},
        Change{"AnotherIdentifier", "\"HRPC\"", "\"HRPD\"",
               "the file identifier changed"}),
    [](const testing::TestParamInfo<Change>& test) { return test.param.what; });

TEST(NotAdditions, AcceptsAdditions) {
  const std::vector<std::pair<std::string, std::string>> additions = {
      {"  end_of_stream: bool (id: 8);\n",
       "  end_of_stream: bool (id: 8);\n  hops: uint (id: 9);\n"},
      {"  Draw = 96,", "  Draw = 96,\n  Erase = 97,"},
      {"  DebugDrawResponse = 129,",
       "  DebugDrawResponse = 129,\n  DebugEraseRequest = 130,"},
      {"root_type Envelope;",
       "table DebugEraseRequest {\n  what: string (id: 0);\n}\n"
       "root_type Envelope;"},
  };
  std::string text = Read(kVersion1);
  ASSERT_EQ(absl::StrReplaceAll(additions, &text), 4);
  EXPECT_EQ(Compare(Read(kVersion1), text), "");
}

}  // namespace
}  // namespace tandem
