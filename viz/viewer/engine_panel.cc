#include "viz/viewer/engine_panel.h"

#include <QByteArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "schema/layout/service.h"
#include "viz/viewer/fast_lane_consumer.h"

namespace tandem {

EnginePanel::EnginePanel(std::string region, AsyncEngineControl* engines,
                         QObject* parent)
    : QObject(parent), region_(std::move(region)), engines_(engines) {
  connect(&read_timer_, &QTimer::timeout, this, &EnginePanel::Read);
  connect(&result_timer_, &QTimer::timeout, this, &EnginePanel::TakeResults);
}

void EnginePanel::SetShown(bool shown) {
  if (!shown || engines_ == nullptr) {
    read_timer_.stop();
  } else if (!read_timer_.isActive()) {
    read_timer_.start(kReadMs);
    Read();
  }
}

QStringList EnginePanel::services() const {
  QStringList names;
  for (const auto& name : kServiceNames) names << Text(name);
  return names;
}

QStringList EnginePanel::modes() const {
  QStringList names;
  for (const std::string& name : EngineControl::ModeNames()) {
    names << Text(name);
  }
  return names;
}

void EnginePanel::switchService(const QString& service, bool on) {
  Act(SwitchService{.service = service.toStdString(), .on = on});
}

void EnginePanel::pause(bool on) { Act(PauseEngine{.on = on}); }

void EnginePanel::step() { Act(StepEngine()); }

void EnginePanel::setMode(const QString& mode, double factor) {
  Act(SetMode{.mode = mode.toStdString(), .factor = factor});
}

void EnginePanel::Act(const EngineAction& action) {
  if (engines_ == nullptr) return;
  pending_.push_back(engines_->Act(region_, action));
  result_timer_.start(kResultMs);
  Q_EMIT changed();
}

void EnginePanel::TakeResults() {
  const size_t before = pending_.size();
  std::erase_if(pending_, [this](const std::shared_ptr<Pending>& pending) {
    const std::optional<absl::StatusOr<std::string>> result = pending->Get();
    if (!result.has_value()) return false;
    if (!result->ok()) {
      Q_EMIT said(Text(PrintableLines(result->status().message())));
    }
    return true;
  });
  if (pending_.size() == before) return;
  // What is then shown includes the action.
  acted_ns_ = MonotonicNanos();
  if (pending_.empty()) result_timer_.stop();
  Read();
  Q_EMIT changed();
}

void EnginePanel::Read() {
  const std::shared_ptr<const std::string> report =
      engines_->Report(region_, MonotonicNanos(), acted_ns_);
  if (report == nullptr || report == shown_report_) return;
  shown_report_ = report;
  const QJsonObject json =
      QJsonDocument::fromJson(QByteArray::fromStdString(*report)).object();
  report_ = json.value(QStringLiteral("known")).toBool() ? json.toVariantMap()
                                                         : QVariantMap();
  Q_EMIT changed();
}

}  // namespace tandem
