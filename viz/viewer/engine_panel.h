// EnginePanel: an engine's processes, times and switches, for QML.
//
// Data flow: AsyncEngineControl's report -> report -> EngineView.qml; the
// user's clicks
// -> AsyncEngineControl::Act -> said.
// Ownership: one RunTab; GUI thread. It reads while shown, and takes an
// attendant slot for each action.

#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <QVariantMap>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "viz/core/background.h"
#include "viz/inspect/async_engine_control.h"

namespace tandem {

class EnginePanel : public QObject {
  Q_OBJECT
  // PanelJsonOf, as maps; empty: no engine has the name
  Q_PROPERTY(QVariantMap report READ report NOTIFY changed)
  Q_PROPERTY(bool known READ known NOTIFY changed)
  // Whether an action has no result yet
  Q_PROPERTY(bool acting READ acting NOTIFY changed)
  Q_PROPERTY(QStringList services READ services CONSTANT)
  Q_PROPERTY(QStringList modes READ modes CONSTANT)

 public:
  static constexpr int kReadMs = 250;
  static constexpr int kResultMs = 20;

  // `engines` must outlive the panel; nullptr: an empty panel.
  EnginePanel(std::string region, AsyncEngineControl* engines,
              QObject* parent = nullptr);

  // Reads reports while shown.
  void SetShown(bool shown);

  QVariantMap report() const { return report_; }
  bool known() const { return !report_.isEmpty(); }
  bool acting() const { return !pending_.empty(); }
  QStringList services() const;
  QStringList modes() const;

  Q_INVOKABLE void switchService(const QString& service, bool on);
  Q_INVOKABLE void pause(bool on);
  Q_INVOKABLE void step();
  Q_INVOKABLE void setMode(const QString& mode, double factor);

 Q_SIGNALS:
  void changed();
  // The reason of a failed action.
  void said(const QString& text);

 private:
  void Act(const EngineAction& action);
  void Read();
  void TakeResults();

  const std::string region_;
  AsyncEngineControl* const engines_;
  QVariantMap report_;
  std::shared_ptr<const std::string> shown_report_;
  std::vector<std::shared_ptr<Pending>> pending_;
  int64_t acted_ns_ = 0;  // the time of the last result
  QTimer read_timer_;
  QTimer result_timer_;
};

}  // namespace tandem
