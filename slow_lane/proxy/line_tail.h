// LineTail: the lines of a file that another process is still writing.
//
// Data flow: a regular file, from an offset on -> pread in chunks ->
// complete lines, each with its offset and length.
// Ownership: the reader's, one thread. It keeps nothing but an offset, so that
// with `next_offset` another LineTail can go on later.
//
//   absl::StatusOr<LineTail> tail = LineTail::Open("stdout.jsonl", offset);
//   while (true) {
//     absl::StatusOr<std::optional<TailLine>> line = tail->Next();
//     if (!line.ok()) return line.status();
//     if (!line->has_value()) break;  // ask again later
//     Use((*line)->text);             // valid until the next Next()
//   }
//
// The writer only appends. A file that got shorter is noticed once it ends
// before what was read; one that was cut and has grown beyond that again, once
// the last bytes that this reader read are others than they were.

#ifndef TANDEM_SLOW_LANE_PROXY_LINE_TAIL_H_
#define TANDEM_SLOW_LANE_PROXY_LINE_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// A line of a file, ended by '\n', which is no part of it; a '\r' before that
// is.
struct TailLine {
  enum class Kind {
    kComplete,
    kOversized,   // longer than LineTail::kMaxLineBytes, its newline or not
    kIncomplete,  // the file's rest, after Finish
  };

  Kind kind = Kind::kComplete;
  // Of an oversized line only the first LineTail::kHeadBytes.
  // LineTail::kPaddingBytes behind it may be read too; what they hold is of no
  // meaning.
  absl::string_view text;
  uint64_t offset = 0;       // of its first byte in the file
  uint64_t length = 0;       // bytes, without the newline
  uint64_t next_offset = 0;  // of the first byte behind it and its newline
};

class LineTail {
 public:
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;
  static constexpr size_t kChunkBytes = size_t{256} << 10;
  static constexpr size_t kHeadBytes = 1024;
  static constexpr size_t kPaddingBytes = 64;
  static constexpr size_t kSeenBytes = 256;

  struct Limits {
    size_t max_line_bytes = kMaxLineBytes;  // at least kHeadBytes
    size_t chunk_bytes = kChunkBytes;       // at least 1
  };

  // Fails if the file cannot be opened for reading or is not a regular one.
  static absl::StatusOr<LineTail> Open(const std::string& path,
                                       uint64_t offset);
  // `name` is for error messages; other limits than the usual ones are for
  // tests.
  LineTail(UniqueFd file, std::string name, uint64_t offset)
      : LineTail(std::move(file), std::move(name), offset, Limits()) {}
  LineTail(UniqueFd file, std::string name, uint64_t offset, Limits limits);

  // The next line. Outcomes:
  //
  //   a line         valid until the next call
  //   nullopt        the file has no other complete line yet: call again later
  //   FAILED_PRECONDITION  the file ends before what was read already, or what
  //                        was read last is not there any more
  //   another error  of the system, with its text
  //
  // After an error nothing was skipped: the next call tries the same again.
  // Makes at most two preads for each kChunkBytes, and a fstat at the end of
  // the file. Holds 2 * kChunkBytes; while a line needs it more, at most
  // kMaxLineBytes and a chunk. Reads an oversized line to its end, and so
  // takes as long as that, unless the file ends sooner.
  absl::StatusOr<std::optional<TailLine>> Next();

  // The writer is gone: from now on the end of the file ends the last line.
  // Should the file grow all the same, more lines follow.
  void Finish() { finished_ = true; }

  // Of the first byte that belongs to no line handed out so far.
  uint64_t next_offset() const { return line_offset_; }

 private:
  enum class Read { kSome, kEnd };

  // Whether what was read last still stands in the file, before `offset`.
  absl::StatusOr<bool> StillStands(uint64_t offset) const;
  // Reads more, behind what is there.
  absl::StatusOr<Read> ReadMore();
  // For a chunk behind what is there.
  void MakeRoom();
  // Hands out what is before `end`, an index into the buffer.
  TailLine Take(TailLine::Kind kind, size_t end, size_t newline_bytes);

  UniqueFd file_;
  std::string name_;
  Limits limits_;
  bool finished_ = false;

  // The buffer holds the file's bytes from line_offset_ on (of an oversized
  // line: its head, then what was read last): [begin_, end_), of which those
  // before scanned_ hold no newline.
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t scanned_ = 0;
  size_t end_ = 0;
  uint64_t line_offset_ = 0;
  // Bytes of an oversized line that were read and dropped.
  uint64_t dropped_ = 0;
  std::string seen_;  // what was read last, up to kSeenBytes
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_LINE_TAIL_H_
