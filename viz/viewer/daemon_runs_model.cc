#include "viz/viewer/daemon_runs_model.h"

#include <QVariantMap>
#include <algorithm>
#include <cstddef>

#include "base/clock.h"
#include "base/printable.h"
#include "viz/core/quantities.h"
#include "viz/viewer/fast_lane_consumer.h"

namespace tandem {
namespace {

QVariantMap RowOf(const DaemonRun& run) {
  return {{QStringLiteral("id"), Text(Printable(run.run_id))},
          {QStringLiteral("name"), Text(Printable(run.name))},
          {QStringLiteral("state"), Text(StateText(run))},
          {QStringLiteral("reason"), Text(Printable(run.reason))},
          {QStringLiteral("evaluation"), Text(run.evaluation)},
          {QStringLiteral("facts"), Text(FactsText(run))}};
}

QString TextOf(const EventFollower::Step& step) {
  return QStringLiteral("%1:  episode %2, step %3, reward %4%5")
      .arg(Text(CountText(step.number)), Text(CountText(step.episode)),
           Text(CountText(step.step)), QString::number(step.reward, 'g', 6),
           step.ended ? QStringLiteral(", end") : QString());
}

}  // namespace

DaemonRunsModel::DaemonRunsModel(const std::string& target, QObject* parent)
    : QObject(parent),
      client_(target.empty() ? nullptr
                             : std::make_unique<AsyncDaemonClient>(target)),
      problem_(QStringLiteral("Looking for a daemon at ") + Text(target)) {
  connect(&read_timer_, &QTimer::timeout, this, &DaemonRunsModel::Read);
}

void DaemonRunsModel::SetShown(bool shown) {
  if (client_ == nullptr) return;
  const int period = shown ? kReadMs : kHiddenReadMs;
  if (read_timer_.isActive() && read_timer_.interval() == period) return;
  read_timer_.start(period);
  Read();
}

QString DaemonRunsModel::target() const {
  return client_ == nullptr ? QString() : Text(client_->target());
}

void DaemonRunsModel::Read() {
  if (follower_ != nullptr) ReadEvents();
  const std::shared_ptr<const AsyncDaemonClient::List> list =
      client_->Runs(MonotonicNanos(), /*not_before_ns=*/0);
  if (list == nullptr || list == shown_list_) return;
  shown_list_ = list;
  problem_ = Text(PrintableLines(list->problem));
  runs_.clear();
  for (const DaemonRun& run : list->runs) runs_.prepend(RowOf(run));
  Q_EMIT changed();
}

void DaemonRunsModel::follow(const QString& run_id) {
  if (client_ == nullptr || followed_ == run_id) return;
  followed_ = run_id;
  follower_.reset();
  steps_.clear();
  events_text_.clear();
  if (!run_id.isEmpty()) follower_ = client_->Follower(run_id.toStdString());
  Q_EMIT changed();
  Q_EMIT eventsChanged();
}

void DaemonRunsModel::ReadEvents() {
  const EventFollower::Events events = follower_->Read();
  events_text_ = Text(SummaryText(events));
  steps_.clear();
  const auto shown =
      std::min<std::ptrdiff_t>(kShownSteps, std::ssize(events.steps));
  std::for_each(
      events.steps.rbegin(), events.steps.rbegin() + shown,
      [&](const EventFollower::Step& step) { steps_ << TextOf(step); });
  Q_EMIT eventsChanged();
}

}  // namespace tandem
