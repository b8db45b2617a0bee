#include "slow_lane/proxy/line_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem::slow_lane {
namespace {

constexpr char kCut[] =
    ": a program cut or replaced it, and lines are lost. Next: look which "
    "program writes to ";

}  // namespace

absl::StatusOr<LineTail> LineTail::Open(const std::string& path,
                                        uint64_t offset) {
  // Without O_NONBLOCK, the open of a pipe would wait for its writer.
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat found = {};
  if (fstat(file.get(), &found) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot fstat ", path));
  }
  if (!S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a regular file, found another kind: ", path));
  }
  return LineTail(std::move(file), path, offset);
}

LineTail::LineTail(UniqueFd file, std::string name, uint64_t offset,
                   Limits limits)
    : file_(std::move(file)),
      name_(std::move(name)),
      limits_(limits),
      line_offset_(offset) {}

absl::StatusOr<std::optional<TailLine>> LineTail::Next() {
  while (true) {
    if (scanned_ < end_) {
      const auto* newline = static_cast<const char*>(
          std::memchr(buffer_.get() + scanned_, '\n', end_ - scanned_));
      if (newline != nullptr) {
        return Take(TailLine::Kind::kComplete,
                    static_cast<size_t>(newline - buffer_.get()),
                    /*newline_bytes=*/1);
      }
      scanned_ = end_;
    }
    if (end_ - begin_ > limits_.max_line_bytes ||
        (dropped_ > 0 && end_ - begin_ > kHeadBytes)) {
      dropped_ += end_ - begin_ - kHeadBytes;
      scanned_ = end_ = begin_ + kHeadBytes;
    }
    TANDEM_ASSIGN_OR_RETURN(const Read got, ReadMore());
    if (got == Read::kSome) continue;
    if (finished_ && begin_ < end_) {
      return Take(TailLine::Kind::kIncomplete, end_, /*newline_bytes=*/0);
    }
    return std::nullopt;
  }
}

TailLine LineTail::Take(TailLine::Kind kind, size_t end, size_t newline_bytes) {
  TailLine line;
  line.kind = kind;
  line.offset = line_offset_;
  line.length = dropped_ + (end - begin_);
  line.next_offset = line.offset + line.length + newline_bytes;
  size_t shown = end - begin_;
  if (line.length > limits_.max_line_bytes) {
    line.kind = TailLine::Kind::kOversized;
    shown = kHeadBytes;
  }
  line.text = absl::string_view(buffer_.get() + begin_, shown);
  line_offset_ = line.next_offset;
  dropped_ = 0;
  scanned_ = begin_ = end + newline_bytes;
  return line;
}

absl::StatusOr<LineTail::Read> LineTail::ReadMore() {
  MakeRoom();
  const uint64_t offset = line_offset_ + dropped_ + (end_ - begin_);
  const ssize_t count = TEMP_FAILURE_RETRY(
      pread(file_.get(), buffer_.get() + end_, limits_.chunk_bytes,
            static_cast<off_t>(offset)));
  if (count < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot read at byte ", offset, " of ", name_));
  }
  if (count > 0) {
    TANDEM_ASSIGN_OR_RETURN(const bool stands, StillStands(offset));
    if (!stands) {
      return absl::FailedPreconditionError(absl::StrCat(
          "expected a file that only grows, found other bytes than were read "
          "before byte ",
          offset, kCut, name_));
    }
    const size_t bytes = static_cast<size_t>(count);
    const size_t last = std::min(bytes, kSeenBytes);
    seen_.append(buffer_.get() + end_ + bytes - last, last);
    seen_.erase(0, seen_.size() - std::min(seen_.size(), kSeenBytes));
    end_ += bytes;
    return Read::kSome;
  }
  struct stat found = {};
  if (fstat(file_.get(), &found) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot fstat ", name_));
  }
  if (static_cast<uint64_t>(found.st_size) < offset) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a file that only grows, of at least ", offset,
                     " bytes, found ", found.st_size, kCut, name_));
  }
  return Read::kEnd;
}

absl::StatusOr<bool> LineTail::StillStands(uint64_t offset) const {
  std::array<char, kSeenBytes> now;
  const ssize_t count =
      TEMP_FAILURE_RETRY(pread(file_.get(), now.data(), seen_.size(),
                               static_cast<off_t>(offset - seen_.size())));
  if (count < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name_));
  }
  return absl::string_view(now.data(), static_cast<size_t>(count)) == seen_;
}

void LineTail::MakeRoom() {
  const size_t chunk = limits_.chunk_bytes;
  const size_t usual = 2 * chunk;
  const size_t kept = end_ - begin_;
  const bool shrinks = capacity_ > usual && kept <= chunk;
  if (!shrinks && end_ + chunk <= capacity_) return;
  if (shrinks || kept + chunk > capacity_) {
    // Doubles the capacity, so that a long line is copied only a few times. A
    // line ends before kMaxLineBytes plus a chunk.
    const size_t capacity =
        std::max(usual, std::min(2 * kept, limits_.max_line_bytes) + chunk);
    std::unique_ptr<char[]> larger(new char[capacity + kPaddingBytes]);
    if (kept > 0) std::memcpy(larger.get(), buffer_.get() + begin_, kept);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  } else {
    std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
  }
  scanned_ -= begin_;
  begin_ = 0;
  end_ = kept;
}

}  // namespace tandem::slow_lane
