// Fuzz target of Refusal. The input is a client's bytes, and the positions at
// which they are split.
//
// Data flow: bytes -> one Refusal gets them at once, another in pieces -> abort
// if the answers differ, or if an answer is too long for the input.
//
//   bazel run --config=fuzz //program/grpc:refusal_fuzz -- -runs=9999
//
// refusal_fuzz_test runs the same function over refusal_corpus and over random
// scripts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "program/grpc/refusal.h"
#include "transport/testing/fuzz_script.h"

namespace tandem {
namespace {

constexpr char kText[] = "expected a client of uid 0, found one of uid 1001";
// A frame has at least nine bytes, and its answer ends one call.
constexpr size_t kMostAnswerBytes = 256;

std::optional<std::string> AnswerInPieces(absl::string_view sent,
                                          size_t piece) {
  Refusal refusal(kText);
  std::string answers;
  while (!sent.empty()) {
    const auto answer = refusal.Answer(sent.substr(0, piece));
    if (!answer.has_value()) return std::nullopt;
    answers += *answer;
    sent.remove_prefix(std::min(piece, sent.size()));
  }
  return answers;
}

// Most random bytes are not HTTP/2. The first byte selects whether a preface
// precedes them.
void Play(Script script) {
  const uint8_t first = script.Byte();
  std::string sent = first % 8 == 0 ? "" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  while (!script.AtEnd()) sent += static_cast<char>(script.Byte());
  const std::optional<std::string> at_once = AnswerInPieces(sent, sent.size());
  Require(AnswerInPieces(sent, 1 + first / 8) == at_once, "another answer");
  Require(!at_once.has_value() ||
              at_once->size() <= (sent.size() / 9 + 2) * kMostAnswerBytes,
          "an answer that is too long");
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::Play(tandem::Script(data, size));
  return 0;
}
