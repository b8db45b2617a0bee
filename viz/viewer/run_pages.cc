#include "viz/viewer/run_pages.h"

#include <QDateTime>
#include <algorithm>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "viz/core/quantities.h"
#include "viz/viewer/fast_lane_consumer.h"

namespace tandem {

RunPages::RunPages(DaemonDesk* desk, QObject* parent)
    : QObject(parent), desk_(desk) {
  connect(&timer_, &QTimer::timeout, this, &RunPages::TakeAnswer);
}

void RunPages::SetRun(const std::string& run_id) {
  run_id_ = run_id;
  show({});
}

void RunPages::Refresh(int64_t now_ns) {
  const bool is_newest = isLog() && !end_.has_value();
  if (is_newest && pending_ == nullptr && now_ns - asked_ns_ >= kRefreshNs) {
    Ask();
  }
}

void RunPages::show(const QString& kind) {
  kind_ = kind;
  log_ = LogKindOf(kind.toStdString());
  first_ = 1;
  end_.reset();
  pending_.reset();
  rows_.clear();
  text_.clear();
  place_.clear();
  if (!kind_.isEmpty()) Ask();
  Q_EMIT changed();
}

void RunPages::first() { GoTo(1); }

void RunPages::earlier() {
  if (!isLog()) return GoTo(first_ > kRows ? first_ - kRows : 1);
  if (answer_ == nullptr || answer_->log.begin == 0) return;
  end_ = answer_->log.begin;
  Ask();
}

void RunPages::later() {
  if (!isLog()) return GoTo(first_ + kRows);
  end_.reset();
  Ask();
}

void RunPages::last() {
  const uint64_t count = Count();
  GoTo(count > kRows ? count - kRows + 1 : 1);
}

void RunPages::goTo(const QString& number) {
  GoTo(number.trimmed().remove(QLatin1Char(',')).toULongLong());
}

uint64_t RunPages::Count() const {
  const DaemonRun* const run =
      desk_ == nullptr ? nullptr : desk_->Find(run_id_);
  if (run == nullptr) return 0;
  return kind_ == QStringLiteral("steps") ? run->stored_steps : run->episodes;
}

void RunPages::GoTo(uint64_t row) {
  first_ = std::clamp<uint64_t>(row, 1, std::max<uint64_t>(1, Count()));
  Ask();
}

void RunPages::Ask() {
  const DaemonRun* const run =
      desk_ == nullptr ? nullptr : desk_->Find(run_id_);
  if (run == nullptr) return;
  asked_ns_ = MonotonicNanos();
  // Each question has an answer of its own, so a late one changes nothing.
  auto answer = std::make_shared<Answer>();
  if (isLog()) {
    pending_ =
        desk_->Ask([folder = run->folder, kind = *log_, end = end_, answer](
                       const DaemonClient&) -> absl::StatusOr<std::string> {
          TANDEM_ASSIGN_OR_RETURN(answer->log, ReadLogTail(folder, kind, end));
          return "";
        });
  } else {
    const auto table = kind_ == QStringLiteral("steps")
                           ? DaemonClient::Table::kSteps
                           : DaemonClient::Table::kEpisodes;
    pending_ = desk_->Ask(
        [run_id = run_id_, table, first = first_,
         answer](const DaemonClient& client) -> absl::StatusOr<std::string> {
          TANDEM_ASSIGN_OR_RETURN(answer->rows,
                                  client.ReadRows(run_id, table, first, kRows));
          return "";
        });
  }
  answer_ = std::move(answer);
  timer_.start(kAnswerMs);
}

void RunPages::TakeAnswer() {
  if (pending_ == nullptr) return timer_.stop();
  const std::optional<absl::StatusOr<std::string>> result = pending_->Get();
  if (!result.has_value()) return;
  pending_.reset();
  timer_.stop();
  if (!result->ok()) {
    place_ = Text(PrintableLines(result->status().message()));
  } else if (isLog()) {
    ShowLog();
  } else {
    ShowRows();
  }
  Q_EMIT changed();
}

void RunPages::ShowRows() {
  rows_.clear();
  const bool is_steps = kind_ == QStringLiteral("steps");
  for (const DaemonRow& row : answer_->rows) {
    rows_ << QVariantMap{
        {QStringLiteral("number"), Text(CountText(row.number))},
        {QStringLiteral("episode"), Text(CountText(row.episode))},
        {QStringLiteral("step"), Text(CountText(row.step))},
        {QStringLiteral("value"),
         QString::number(row.value, 'g', 6) +
             (is_steps && row.ended ? QStringLiteral(", end") : QString())},
        {QStringLiteral("time"), QDateTime::fromMSecsSinceEpoch(
                                     static_cast<qint64>(row.time_secs * 1000))
                                     .time()
                                     .toString(Qt::ISODate)}};
  }
  place_ = answer_->rows.empty()
               ? QStringLiteral("no rows")
               : QStringLiteral("rows %1 to %2 of %3")
                     .arg(Text(CountText(answer_->rows.front().number)),
                          Text(CountText(answer_->rows.back().number)),
                          Text(CountText(
                              std::max(Count(), answer_->rows.back().number))));
}

void RunPages::ShowLog() {
  const LogTail& log = answer_->log;
  text_ = Text(log.text);
  place_ = QStringLiteral("bytes %1 to %2 of %3")
               .arg(Text(CountText(log.begin)), Text(CountText(log.end)),
                    Text(CountText(log.size)));
}

}  // namespace tandem
