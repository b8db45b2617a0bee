// Tells of each line of the input what the slow lane takes it for:
//   bazel run //slow_lane/proxy:check_events < stdout.jsonl
//
// Prints a line for each: its kind and, of a malformed one, a tab and why. Exit
// code 1 if there was a malformed one.
#include <iostream>
#include <string>

#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/event_line.h"

int main() {
  using tandem::slow_lane::EventLineParser;
  using tandem::slow_lane::LineKind;
  EventLineParser parser;
  bool valid = true;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t length = line.size();
    line.append(EventLineParser::kPaddingBytes, '\0');
    tandem::slow_lane::v1::EventBatch batch;
    const LineKind kind =
        parser.Parse(absl::string_view(line).substr(0, length), &batch);
    std::cout << LineKindName(kind);
    if (kind == LineKind::kMalformed) {
      std::cout << '\t' << parser.reason();
      valid = false;
    }
    std::cout << '\n';
  }
  return valid ? 0 : 1;
}
