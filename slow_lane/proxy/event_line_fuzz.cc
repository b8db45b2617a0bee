// Fuzz target of EventLineParser. The input is lines. If its first byte is 0x80
// or more, it is a script that makes lines of the schemas' fields and of values
// of all kinds.
//
// Data flow: bytes -> lines -> the parser -> abort if the batch does not match
// the kind, or if a reason is not printable. AddressSanitizer checks the memory
// after a line's padding. event_schema_test checks the kinds, and reads
// event_line_corpus, too.
//
//   bazel run --config=fuzz //slow_lane/proxy:event_line_fuzz -- -runs=9999
//
// event_line_fuzz_test runs the same function over event_line_corpus and over
// random scripts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "slow_lane/proxy/event_fields.h"
#include "slow_lane/proxy/event_line.h"
#include "transport/testing/fuzz_script.h"

namespace tandem::slow_lane {
namespace {

constexpr absl::string_view kBeginnings[] = {
    R"("event_type":"step","episode":1,"step_index":2,"reward":3.5)",
    R"("type":"EPISODE","episode_index":1,"total_reward":-1,"steps":2)",
    R"("event":"run_started")",
    R"("type":"scalars","step":1,"scalars":{"a":1})",
    R"("type":"step")",
    "",
};
constexpr absl::string_view kValues[] = {
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-0.0",
    "7",
    "-7",
    "7.0",
    "7.5",
    "1e3",
    "4294967295",
    "4294967296",
    "9999999999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "9999999999999999999",
    "10000000000000000000",
    "1.8446744073709552e19",
    "1e308",
    "1e309",
    "1e-400",
    "0.1234567890123456789",
    "NaN",
    "-Infinity",
    R"("NaN")",
    R"("-Infinity")",
    R"("")",
    R"("step")",
    R"("EPISODE")",
    R"("x\n\"\\\/\u00e9\ud83d\ude00")",
    R"("\ud83d")",
    R"("1700000000000000000")",
    R"("17000000000000000000")",
    R"("[1, 2]")",
    R"("{\"episode_index\":3}")",
    R"("{\"episode_index\":3,\"episode_index\":3}")",
    R"("{\"a\":[1,{}]} ")",
    "[]",
    "{}",
    "[0.02, -0.01, \"]\", {\"}\": null}]",
    R"({"episode_index":3})",
    R"({"episode_index":-3})",
    R"({"episode_index":null,"episode_index":3})",
    R"({"a":1,"b":"NaN","a":-2e3})",
    R"({ "a" : [ "b\\\"" , [ ] ] })",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1"
    "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1"
    "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    "[1,]",
};

// Makes a line of the schemas' fields, most of them with a plausible value.
std::string MakeLine(Script* script) {
  std::string line = "{";
  absl::StrAppend(&line, kBeginnings[script->Byte() % std::size(kBeginnings)]);
  for (int fields = script->Byte() % 8; fields > 0; --fields) {
    if (line.size() > 1) line += ",";
    const std::vector<std::string>& names = LineRules::Get().names();
    const size_t index = script->Byte() % (names.size() + 1);
    const std::string name = index < names.size() ? names[index] : "other";
    const absl::string_view value =
        kValues[script->Byte() % std::size(kValues)];
    absl::StrAppend(&line, "\"", name, "\":", value);
  }
  line += "}";
  // Sometimes changes a byte.
  const uint8_t at = script->Byte();
  if (at % 4 == 0) line[at % line.size()] = static_cast<char>(script->Byte());
  return line;
}

void CheckLine(const std::string& line, EventLineParser* parser) {
  // In a memory block of its own, for AddressSanitizer. The bytes after the
  // line look like a part of it.
  constexpr size_t kPadding = EventLineParser::kPaddingBytes;
  const auto block = std::make_unique<char[]>(line.size() + kPadding);
  std::copy(line.begin(), line.end(), block.get());
  std::fill_n(block.get() + line.size(), kPadding, '1');

  v1::EventBatch batch;
  const LineKind kind = parser->Parse({block.get(), line.size()}, &batch);
  Require(IsMeantAsEvent(line) == (kind != LineKind::kText), "text");
  Require(batch.steps_size() == (kind == LineKind::kStep), "steps");
  Require(batch.episodes_size() == (kind == LineKind::kEpisode), "episodes");
  Require(batch.lifecycle_size() == (kind == LineKind::kLifecycle),
          "lifecycle events");
  Require(batch.scalars_size() == (kind == LineKind::kScalars), "scalars");
  const std::string& reason = parser->reason();
  Require(reason.empty() == (kind != LineKind::kMalformed), "the reason");
  Require(reason.size() <= 400, "a long reason");
  Require(PrintableHead(reason, 4096) == reason, "an unprintable reason");
}

void RunInput(const uint8_t* data, size_t size) {
  EventLineParser parser;  // one for all lines, as in a run
  if (size > 0 && data[0] >= 0x80) {
    for (Script script(data + 1, size - 1); !script.AtEnd();) {
      CheckLine(MakeLine(&script), &parser);
    }
    return;
  }
  std::istringstream lines(std::string(data, data + size));
  for (std::string line; std::getline(lines, line);) CheckLine(line, &parser);
}

}  // namespace
}  // namespace tandem::slow_lane

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::slow_lane::RunInput(data, std::min<size_t>(size, 1 << 16));
  return 0;
}
