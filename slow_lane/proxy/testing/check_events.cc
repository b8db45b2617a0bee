// Prints the kind of each line of the input:
//   bazel run //slow_lane/proxy:check_events < stdout.jsonl
//
// For a malformed line also a tab and the reason; then the exit code is 1.
#include <iostream>
#include <string>

#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/event_line.h"

int main() {
  constexpr absl::string_view kKinds[] = {"step",    "episode", "lifecycle",
                                          "scalars", "text",    "malformed"};
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
    std::cout << kKinds[static_cast<int>(kind)];
    if (kind == LineKind::kMalformed) {
      std::cout << '\t' << parser.reason();
      valid = false;
    }
    std::cout << '\n';
  }
  return valid ? 0 : 1;
}
