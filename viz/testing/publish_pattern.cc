// publish_pattern RUN [KIND [WIDTH HEIGHT CHANNELS [HZ [TILES]]]]: publishes
// the pattern until SIGTERM. KIND: segment, foreign or region.
#include <cstdio>
#include <string>

#include "viz/testing/pattern.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("expected the run's name; see the top of this source\n", stderr);
    return 2;
  }
  const auto word = [&](int at, const char* otherwise) {
    return std::string(argc > at ? argv[at] : otherwise);
  };
  const auto number = [&](int at, const char* otherwise) {
    return static_cast<uint32_t>(std::stoul(word(at, otherwise)));
  };
  tandem::PatternRun run;
  run.run = argv[1];
  const std::string kind = word(2, "segment");
  run.kind = kind == "region"    ? tandem::PatternRun::Kind::kRegion
             : kind == "foreign" ? tandem::PatternRun::Kind::kForeign
                                 : tandem::PatternRun::Kind::kSegment;
  run.geometry.width = number(3, "64");
  run.geometry.height = number(4, "48");
  run.geometry.channels = number(5, "3");
  run.hz = number(6, "60");
  run.tiles = number(7, "1");
  return tandem::RunPattern(run);
}
