#include "viz/viewer/daemon_runs_model.h"

#include <QVariantMap>

#include "base/clock.h"
#include "base/printable.h"
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
  const std::shared_ptr<const AsyncDaemonClient::List> list =
      client_->Runs(MonotonicNanos(), /*not_before_ns=*/0);
  if (list == nullptr || list == shown_list_) return;
  shown_list_ = list;
  problem_ = Text(PrintableLines(list->problem));
  runs_.clear();
  for (const DaemonRun& run : list->runs) runs_.prepend(RowOf(run));
  Q_EMIT changed();
}

}  // namespace tandem
