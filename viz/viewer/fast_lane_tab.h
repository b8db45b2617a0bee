// FastLaneTab: a run's live view as a widget, for other Qt programs. It is what
// a tab of the viewer shows: image, numbers, the engine's panel, keys.
//
// Data flow: the run's frames in shared memory -> FastLaneView.qml in a
// QQuickWidget. It only reads, except by the buttons of the engine's panel.
// Ownership: the program's parent widget; GUI thread. This header needs Qt
// alone. The library is //viz/viewer:fast_lane_tab.
//
//   auto* tab = new tandem::FastLaneTab("tandem", "agent_0");
//   tabs->addTab(tab, "tandem");

#pragma once

#include <QKeyEvent>
#include <QString>
#include <QWidget>
#include <memory>

namespace tandem {

class FastLaneTab : public QWidget {
  Q_OBJECT

 public:
  struct Options {
    QString mode_label = QStringLiteral("Fast lane");
    QString run_mode = QStringLiteral("train");  // or "policy_eval"
    QString eval_summary = {};  // "": var/trainer/runs/RUN/eval_summary.json
    QString snapshots = QStringLiteral(".");  // folder
    bool dark = true;
  };

  // `run_id`: the name of an engine's region, or the run id of a fast lane. The
  // run may begin and end at any time.
  FastLaneTab(const QString& run_id, const QString& agent_id,
              const Options& options, QWidget* parent = nullptr);
  explicit FastLaneTab(const QString& run_id, const QString& agent_id = {},
                       QWidget* parent = nullptr)
      : FastLaneTab(run_id, agent_id, Options(), parent) {}
  ~FastLaneTab() override;

  QString runId() const;
  // "connected", "stale", "reconnecting" or "fastlane-unavailable".
  QString status() const;

 Q_SIGNALS:
  void statusChanged(const QString& status);
  void said(const QString& text);  // such as the path of a snapshot

 protected:
  void keyPressEvent(QKeyEvent* event) override;  // the viewer's keys
  void showEvent(QShowEvent* event) override;     // a hidden tab polls less
  void hideEvent(QHideEvent* event) override;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
