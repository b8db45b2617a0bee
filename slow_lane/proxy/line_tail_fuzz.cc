// Fuzz target of LineTail. The input is a script of the writer's appends and
// the reader's reads.
//
// Data flow: bytes -> appends to a file in memory, calls of a LineTail -> abort
// if its lines differ from those of std::getline.
//
//   bazel run --config=fuzz //slow_lane/proxy:line_tail_fuzz -- -runs=9999
//
// line_tail_fuzz_test runs the same function over line_tail_corpus and over
// random scripts.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "slow_lane/proxy/line_tail.h"
#include "transport/testing/fuzz_script.h"

namespace tandem::slow_lane {
namespace {

// A copy of a returned line.
struct Line {
  TailLine::Kind kind;
  std::string text;
  uint64_t offset;
  uint64_t length;
};

class Run {
 public:
  Run() : file_(memfd_create("line_tail_fuzz", MFD_CLOEXEC)) {
    Require(file_.valid(), "memfd_create");
  }

  void Play(Script script) {
    // Small limits, so that a script reaches all cases.
    limits_.chunk_bytes = 1 + script.Byte();
    limits_.max_line_bytes = LineTail::kHeadBytes + 4u * script.Byte();
    LineTail tail = Tail(0);
    while (!script.AtEnd()) {
      const uint8_t action = script.Byte();
      switch (action % 8) {
        case 0:
        case 1: {  // a few bytes
          std::string bytes;
          for (int i = action / 8; i > 0; --i) {
            bytes += static_cast<char>(script.Byte());
          }
          Append(bytes);
          break;
        }
        case 2:
          Append("\n");
          break;
        case 3:  // about a chunk
          Append(std::string(limits_.chunk_bytes + action / 8, 'c'));
          break;
        case 4: {  // about the longest line
          const size_t less = size_t{256} * (action / 8 % 4) + script.Byte();
          Append(std::string(limits_.max_line_bytes + 128 - less, 'm'));
          break;
        }
        case 5:
        case 6:
          for (int i = 1 + action / 8; i > 0 && Take(&tail); --i) {
          }
          break;
        default:  // another reader continues
          tail = Tail(tail.next_offset());
          break;
      }
    }
    tail.Finish();
    while (Take(&tail)) {
    }
    Compare();
  }

 private:
  LineTail Tail(uint64_t offset) const {
    return LineTail(UniqueFd(dup(file_.get())), "the file", offset, limits_);
  }

  void Append(const std::string& bytes) {
    Require(pwrite(file_.get(), bytes.data(), bytes.size(),
                   static_cast<off_t>(written_.size())) ==
                static_cast<ssize_t>(bytes.size()),
            "pwrite");
    written_ += bytes;
  }

  // Returns false if there is no line.
  bool Take(LineTail* tail) {
    const uint64_t before = tail->next_offset();
    const absl::StatusOr<std::optional<TailLine>> line = tail->Next();
    Require(line.ok(), "an error");
    if (!line->has_value()) {
      Require(tail->next_offset() == before, "none, but another offset");
      const bool rest = before == written_.size();
      Require(rest || written_.find('\n', before) == std::string::npos,
              "none, but there is one");
      return false;
    }
    const TailLine& found = **line;
    Require(found.offset == before, "another offset than promised");
    Require(found.next_offset == tail->next_offset(), "another next offset");
    // The padding may be read.
    const volatile char* padding = found.text.data() + found.text.size();
    for (size_t i = 0; i < LineTail::kPaddingBytes; ++i) (void)padding[i];
    lines_.push_back(
        {found.kind, std::string(found.text), found.offset, found.length});
    return true;
  }

  void Compare() const {
    std::istringstream stream(written_);
    size_t index = 0;
    uint64_t offset = 0;
    for (std::string text; std::getline(stream, text); ++index) {
      Require(index < lines_.size(), "a line is missing");
      const Line& line = lines_[index];
      Require(line.offset == offset, "another offset");
      Require(line.length == text.size(), "another length");
      offset += text.size() + 1;
      TailLine::Kind kind = TailLine::Kind::kComplete;
      if (stream.eof()) kind = TailLine::Kind::kIncomplete;
      if (text.size() > limits_.max_line_bytes) {
        kind = TailLine::Kind::kOversized;
        text.resize(LineTail::kHeadBytes);
      }
      Require(line.kind == kind, "another kind");
      Require(line.text == text, "another text");
    }
    Require(index == lines_.size(), "a line too many");
  }

  UniqueFd file_;
  LineTail::Limits limits_;
  std::string written_;
  std::vector<Line> lines_;
};

}  // namespace
}  // namespace tandem::slow_lane

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::slow_lane::Run().Play(
      tandem::Script(data, std::min<size_t>(size, 512)));
  return 0;
}
