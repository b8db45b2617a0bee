#include "viz/viewer/daemon_board.h"

#include <QFile>
#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "viz/core/eval_summary.h"
#include "viz/core/quantities.h"
#include "viz/viewer/fast_lane_consumer.h"

namespace tandem {
namespace {

QString Count(uint64_t number) { return Text(CountText(number)); }

QString FactsOf(const DaemonRun& run) {
  QString facts = Count(run.steps);
  if (run.max_steps.has_value()) {
    facts += QStringLiteral(" of ") + Count(*run.max_steps);
  }
  facts += QStringLiteral(" steps, %1/s, %2 episodes")
               .arg(run.steps_per_second, 0, 'f', 0)
               .arg(Count(run.episodes));
  if (run.last_return.has_value()) {
    facts += QStringLiteral(", return %1").arg(*run.last_return, 0, 'g', 6);
  }
  return facts;
}

QString EvaluationOf(const DaemonRun& run) {
  return run.evaluation.has_value() ? Text(EvalSummaryText(*run.evaluation))
                                    : QString();
}

QVariantMap RowOf(const DaemonRun& run) {
  return {
      {QStringLiteral("id"), Text(Printable(run.run_id))},
      {QStringLiteral("name"), Text(Printable(run.name))},
      {QStringLiteral("state"),
       Text(run.state) +
           (run.unreachable ? QStringLiteral(", unreachable") : QString())},
      {QStringLiteral("ended"), run.has_ended},
      {QStringLiteral("paused"), run.state == "PAUSE"},
      {QStringLiteral("holdable"), run.state == "EXEC" || run.state == "PAUSE"},
      {QStringLiteral("reason"), Text(Printable(run.reason))},
      {QStringLiteral("evaluation"), EvaluationOf(run)},
      {QStringLiteral("facts"), FactsOf(run)}};
}

}  // namespace

DaemonBoard::DaemonBoard(const std::string& target, QObject* parent)
    : QObject(parent),
      desk_(target.empty() ? nullptr : std::make_unique<DaemonDesk>(target)),
      problem_(QStringLiteral("Looking for a daemon at ") + Text(target)) {
  connect(&read_timer_, &QTimer::timeout, this, &DaemonBoard::Read);
  connect(&result_timer_, &QTimer::timeout, this, &DaemonBoard::TakeResults);
}

void DaemonBoard::SetShown(bool shown) {
  if (desk_ == nullptr) return;
  const int period = shown ? kReadMs : kHiddenReadMs;
  if (read_timer_.isActive() && read_timer_.interval() == period) return;
  read_timer_.start(period);
  Read();
}

QString DaemonBoard::target() const {
  return desk_ == nullptr ? QString() : Text(desk_->target());
}

QString DaemonBoard::example() const { return Text(kExampleConfig); }

void DaemonBoard::submit(const QString& config) {
  Act({.what = "submit", .config = config.toStdString()});
}

void DaemonBoard::cancel(const QString& run_id) {
  Act({.what = "cancel", .run_id = run_id.toStdString()});
}

void DaemonBoard::hold(const QString& run_id, bool on) {
  Act({.what = "hold", .run_id = run_id.toStdString(), .on = on});
}

QString DaemonBoard::load(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) {
    Q_EMIT said(QStringLiteral("expected a configuration that can be read, "
                               "found %1: %2")
                    .arg(file.errorString(), path));
    return {};
  }
  constexpr auto kMostBytes = qint64{DaemonDesk::kMostConfigBytes};
  const QByteArray text = file.read(kMostBytes + 1);
  if (text.size() > kMostBytes) {
    Q_EMIT said(QStringLiteral("expected a configuration of at most %1 bytes, "
                               "found a longer file: %2")
                    .arg(Count(DaemonDesk::kMostConfigBytes), path));
    return {};
  }
  return QString::fromUtf8(text);
}

void DaemonBoard::Act(const DaemonAction& action) {
  if (desk_ == nullptr) return;
  pending_.push_back(desk_->Act(action));
  result_timer_.start(kResultMs);
}

void DaemonBoard::TakeResults() {
  const size_t before = pending_.size();
  std::erase_if(pending_, [this](const std::shared_ptr<Pending>& pending) {
    const std::optional<absl::StatusOr<std::string>> result = pending->Get();
    if (!result.has_value()) return false;
    Q_EMIT said(result->ok()
                    ? Text(**result)
                    : Text(PrintableLines(result->status().message())));
    return true;
  });
  if (pending_.size() == before) return;
  // What is then shown includes the action.
  acted_ns_ = MonotonicNanos();
  if (pending_.empty()) result_timer_.stop();
  Read();
}

void DaemonBoard::Read() {
  if (follower_ != nullptr) ReadEvents();
  pages_.Refresh(MonotonicNanos());
  const std::shared_ptr<const DaemonDesk::List> list =
      desk_->Runs(MonotonicNanos(), acted_ns_);
  if (list == nullptr || list == shown_list_) return;
  shown_list_ = list;
  problem_ = Text(PrintableLines(list->problem));
  runs_.clear();
  for (const DaemonRun& run : list->runs) runs_.prepend(RowOf(run));
  Q_EMIT changed();
}

void DaemonBoard::follow(const QString& run_id) {
  if (desk_ == nullptr || followed_ == run_id) return;
  followed_ = run_id;
  follower_.reset();
  events_ = {};
  pages_.SetRun(run_id.toStdString());
  steps_.clear();
  events_text_.clear();
  if (!run_id.isEmpty()) follower_ = desk_->Follower(run_id.toStdString());
  Q_EMIT changed();
  Q_EMIT eventsChanged();
}

void DaemonBoard::ReadEvents() {
  events_ = follower_->Read();
  const QString state = !events_.problem.empty() ? Text(events_.problem)
                        : events_.has_ended ? QStringLiteral("all received")
                        : events_.connected
                            ? QStringLiteral("live")
                            : QStringLiteral("looking for the daemon");
  events_text_ =
      QStringLiteral("%1 steps, %2 episodes: %3")
          .arg(Count(events_.last_step), Count(events_.last_episode), state);
  steps_.clear();
  const size_t shown = std::min<size_t>(kShownSteps, events_.steps.size());
  for (size_t i = 0; i < shown; ++i) {  // the newest first
    const EventFollower::Step& step =
        events_.steps[events_.steps.size() - 1 - i];
    steps_ << QVariantMap{
        {QStringLiteral("number"), Count(step.number)},
        {QStringLiteral("episode"), Count(step.episode)},
        {QStringLiteral("step"), Count(step.step)},
        {QStringLiteral("reward"),
         QString::number(step.reward, 'g', 6) +
             (step.ended ? QStringLiteral(", end") : QString())}};
  }
  Q_EMIT eventsChanged();
}

const SampleHistory* DaemonBoard::History(const QString& series) const {
  const SampleHistory& history =
      series == QStringLiteral("return") ? events_.returns : events_.lengths;
  return history.buckets().empty() ? nullptr : &history;
}

double DaemonBoard::Newest(const QString& series) const {
  const SampleHistory* const history = History(series);
  return history == nullptr ? 0 : history->buckets().back().last;
}

QString DaemonBoard::SpanText(const SampleHistory& history) const {
  return Count(history.count()) + (history.count() == 1
                                       ? QStringLiteral(" episode")
                                       : QStringLiteral(" episodes"));
}

}  // namespace tandem
