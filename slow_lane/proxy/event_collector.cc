#include "slow_lane/proxy/event_collector.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace tandem::slow_lane {

static_assert(LineTail::kPaddingBytes >= EventLineParser::kPaddingBytes);
static_assert(LineTail::kHeadBytes >= EventCollector::kHeadBytes);

absl::StatusOr<EventCollector> EventCollector::Open(
    const std::string& path, const v1::Position& position,
    uint64_t step_stride) {
  absl::StatusOr<LineTail> tail = LineTail::Open(path, position.offset());
  if (!tail.ok()) return tail.status();
  return EventCollector(*std::move(tail), position, step_stride);
}

EventCollector::EventCollector(LineTail tail, const v1::Position& position,
                               uint64_t step_stride)
    : tail_(std::move(tail)), position_(position), step_stride_(step_stride) {}

absl::StatusOr<bool> EventCollector::Collect(v1::EventBatch* batch) {
  *batch->mutable_begin() = position_;
  size_t used = 0;
  while (used < kBatchBytes) {
    if (!next_line_.has_value()) {
      absl::StatusOr<std::optional<TailLine>> line = tail_.Next();
      if (!line.ok() && used == 0) return line.status();
      if (!line.ok() || !line->has_value()) break;
      next_line_ = **line;
    }
    if (used > 0 && used + next_line_->length > kBatchBytes) break;
    used += Add(*std::exchange(next_line_, std::nullopt), batch);
  }
  *batch->mutable_end() = position_;
  return used > 0;
}

size_t EventCollector::Add(const TailLine& line, v1::EventBatch* batch) {
  position_.set_offset(line.next_offset);
  size_t used = line.next_offset - line.offset;
  LineKind kind = LineKind::kText;
  std::string reason;
  if (line.kind != TailLine::Kind::kOversized) {
    kind = parser_.Parse(line.text, batch);
    if (kind == LineKind::kMalformed) reason = parser_.reason();
  } else if (IsMeantAsEvent(line.text)) {
    kind = LineKind::kMalformed;
    reason = absl::StrCat("line: expected at most ", LineTail::kMaxLineBytes,
                          " bytes, found ", line.length);
  }
  switch (kind) {
    case LineKind::kStep: {
      const uint64_t number = position_.steps() + 1;
      position_.set_steps(number);
      if ((number - 1) % step_stride_ == 0) {
        batch->mutable_steps()->rbegin()->set_seq_id(number);
      } else {
        batch->mutable_steps()->RemoveLast();
      }
      break;
    }
    case LineKind::kEpisode:
      position_.set_episodes(position_.episodes() + 1);
      batch->mutable_episodes()->rbegin()->set_seq_id(position_.episodes());
      break;
    case LineKind::kLifecycle:
      position_.set_lifecycle(position_.lifecycle() + 1);
      batch->mutable_lifecycle()->rbegin()->set_seq_id(position_.lifecycle());
      break;
    case LineKind::kScalars:
      position_.set_scalars(position_.scalars() + 1);
      batch->mutable_scalars()->rbegin()->set_seq_id(position_.scalars());
      break;
    case LineKind::kText:
      position_.set_text_lines(position_.text_lines() + 1);
      break;
    case LineKind::kMalformed: {
      if (line.kind == TailLine::Kind::kIncomplete) {
        absl::StrAppend(&reason, "; the worker ended within this line");
      }
      position_.set_malformed(position_.malformed() + 1);
      v1::MalformedLine* const malformed = batch->add_malformed();
      malformed->set_seq_id(position_.malformed());
      malformed->set_offset(line.offset);
      malformed->set_length(line.length);
      malformed->set_reason(reason);
      malformed->set_head(PrintableHead(line.text, kHeadBytes));
      used += kMalformedBytes;
      break;
    }
  }
  return used;
}

}  // namespace tandem::slow_lane
