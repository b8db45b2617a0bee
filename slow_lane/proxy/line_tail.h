// LineTail: reads the lines of a file that another process still writes.
//
// Data flow: a regular file, from an offset -> pread in chunks -> complete
// lines, each with its offset and length.
// Ownership: the reader owns it; one thread uses it. Its only lasting state is
// an offset: another LineTail can continue at `next_offset` later.
//
// The writer only appends. A file that became shorter is detected when it ends
// before the read bytes. A file that was cut and has grown again is detected
// when the last bytes that this reader read have changed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"

namespace tandem::slow_lane {

// A line of a file. It ends before '\n'; a '\r' before that is part of it.
struct TailLine {
  enum class Kind {
    kComplete,
    kOversized,   // longer than LineTail::kMaxLineBytes
    kIncomplete,  // the rest of the file, after Finish
  };

  Kind kind = Kind::kComplete;
  // For an oversized line, only the first LineTail::kHeadBytes.
  // LineTail::kPaddingBytes after it are readable, with unspecified content.
  absl::string_view text;
  uint64_t offset = 0;       // of its first byte in the file
  uint64_t length = 0;       // bytes, without the newline
  uint64_t next_offset = 0;  // of the first byte after its newline
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

  // An error if the file cannot be opened for reading or is not a regular file.
  static absl::StatusOr<LineTail> Open(const std::string& path,
                                       uint64_t offset);
  // `name` is for error texts. Only tests use other limits.
  LineTail(UniqueFd file, std::string name, uint64_t offset)
      : LineTail(std::move(file), std::move(name), offset, Limits()) {}
  LineTail(UniqueFd file, std::string name, uint64_t offset, Limits limits);

  // The next line. Outcomes:
  //
  //   a line         valid until the next call
  //   nullopt        the file has no further complete line yet: call again
  //                  later
  //   FAILED_PRECONDITION  the file ends before the bytes read already, or
  //                        the last bytes read have changed
  //   another error  the system's, with its text
  //
  // After an error nothing was skipped: the next call tries the same again.
  // Makes at most two preads for each kChunkBytes, and a fstat at the end of
  // the file. Holds 2 * kChunkBytes of memory; more while a line needs it, at
  // most kMaxLineBytes and a chunk. Reads an oversized line to its end, or to
  // the file's end, before it returns.
  absl::StatusOr<std::optional<TailLine>> Next();

  // The writer has ended: from now on the end of the file ends the last line.
  // If the file grows nevertheless, more lines follow.
  void Finish() { finished_ = true; }

  // The offset of the first byte that belongs to no returned line.
  uint64_t next_offset() const { return line_offset_; }

 private:
  enum class Read { kSome, kEnd };

  // Whether the file still has the last read bytes before `offset`.
  absl::StatusOr<bool> StillStands(uint64_t offset) const;
  // Reads more bytes, after those in the buffer.
  absl::StatusOr<Read> ReadMore();
  // Makes room for a chunk after the bytes in the buffer.
  void MakeRoom();
  // Returns the bytes before `end`, an index into the buffer.
  TailLine Take(TailLine::Kind kind, size_t end, size_t newline_bytes);

  UniqueFd file_;
  std::string name_;
  Limits limits_;
  bool finished_ = false;

  // The buffer has the file's bytes from line_offset_ on; for an oversized
  // line, its head, then the last read bytes. They are in [begin_, end_); those
  // before scanned_ have no newline.
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t scanned_ = 0;
  size_t end_ = 0;
  uint64_t line_offset_ = 0;
  // The number of an oversized line's bytes that were read and dropped.
  uint64_t dropped_ = 0;
  std::string seen_;  // the last read bytes, up to kSeenBytes
};

}  // namespace tandem::slow_lane
