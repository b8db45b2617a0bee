// RunTab: one displayed run: its image, its numbers, and the user's
// actions.
//
// Data flow: FastLaneConsumer -> the image and the texts that
// FastLaneView.qml binds to; actions -> pause, focus, snapshots.
// Ownership: the Viewer's list of tabs; GUI thread. FrameItem makes its texture
// from image() while the GUI thread waits.

#pragma once

#include <QImage>
#include <QObject>
#include <QString>
#include <QTimer>
#include <functional>
#include <optional>

#include "viz/core/daemon_client.h"
#include "viz/core/image_view.h"
#include "viz/core/key_map.h"
#include "viz/core/playback.h"
#include "viz/inspect/async_engine_control.h"
#include "viz/viewer/engine_panel.h"
#include "viz/viewer/fast_lane_consumer.h"

namespace tandem {

struct RunTabOptions {
  QString mode_label = QStringLiteral("Fast lane");
  bool policy_eval = false;                 // shows the evaluation's results
  QString eval_summary;                     // "": MOSAIC's path
  QString snapshots = QStringLiteral(".");  // folder
  AsyncEngineControl* engines = nullptr;    // must outlive the tab
};

// Saves the image in the folder, by NewFileName; `save` gets the path. Returns
// a message for the user.
QString SaveSnapshot(const QString& folder, const QString& name,
                     const std::function<bool(const QString& path)>& save);

// Returns the key map's name of a pressed key: "Space", "Ctrl+W", "?".
QString KeyName(int key, Qt::KeyboardModifiers modifiers);

class RunTab : public QObject {
  Q_OBJECT
  Q_PROPERTY(QString runId READ runId CONSTANT)
  Q_PROPERTY(QString runName READ runName CONSTANT)
  Q_PROPERTY(QString agentId READ agentId CONSTANT)
  Q_PROPERTY(QString modeLabel READ modeLabel CONSTANT)
  Q_PROPERTY(QString runMode READ runMode CONSTANT)
  Q_PROPERTY(QString status READ status NOTIFY changed)
  Q_PROPERTY(QString reason READ reason NOTIFY changed)
  Q_PROPERTY(bool live READ live NOTIFY changed)
  Q_PROPERTY(bool paused READ paused NOTIFY changed)
  Q_PROPERTY(bool hasImage READ hasImage NOTIFY changed)
  Q_PROPERTY(QString ageText READ ageText NOTIFY changed)
  Q_PROPERTY(QString hudText READ hudText NOTIFY changed)
  Q_PROPERTY(QString stepText READ stepText NOTIFY changed)
  Q_PROPERTY(QString fpsText READ fpsText NOTIFY changed)
  Q_PROPERTY(QString dropsText READ dropsText NOTIFY changed)
  Q_PROPERTY(QString sizeText READ sizeText NOTIFY changed)
  Q_PROPERTY(QString episodesText READ episodesText NOTIFY changed)
  Q_PROPERTY(QString jobText READ jobText NOTIFY changed)
  Q_PROPERTY(QString errorText READ errorText NOTIFY changed)
  Q_PROPERTY(QString evalText READ evalText NOTIFY changed)
  Q_PROPERTY(QString tileText READ tileText NOTIFY viewChanged)
  Q_PROPERTY(bool hudShown READ hudShown NOTIFY layersChanged)
  Q_PROPERTY(bool engineShown READ engineShown NOTIFY layersChanged)
  Q_PROPERTY(QObject* engine READ engine CONSTANT)  // an EnginePanel

 public:
  RunTab(const QString& run_id, const QString& agent_id,
         const RunTabOptions& options, QObject* parent = nullptr);

  // Sets whether the tab is visible; a hidden tab polls less often.
  void SetShown(bool shown, double refresh_hz);
  // Returns false if tabs do not handle the action.
  bool Perform(Action action);

  QString runId() const { return run_id_; }
  // The run, for display: no control characters, no marks of direction.
  QString runName() const;
  QString agentId() const { return agent_id_; }
  QString modeLabel() const { return options_.mode_label; }
  QString runMode() const {
    return options_.policy_eval ? QStringLiteral("policy_eval") : QString();
  }
  QString status() const;
  QString reason() const;  // empty while there is a link
  bool live() const;       // connected, and not paused
  bool paused() const { return playback_.frozen(); }
  bool hasImage() const { return !image_.isNull(); }
  QString ageText() const;  // the shown image's age; "" without an image
  QString hudText() const { return hud_text_; }
  QString stepText() const { return step_text_; }
  QString fpsText() const;
  QString dropsText() const;
  QString sizeText() const;
  QString episodesText() const;
  QString errorText() const { return error_text_; }  // the rendering error
  QString evalText() const { return eval_text_; }
  // Of the daemon's run that the frames belong to: "EXEC", "FAULT: a reason".
  QString jobText() const { return job_text_; }
  // Shows its state, and its evaluation.
  void ShowJob(const DaemonRun& run);
  QString tileText() const;
  bool hudShown() const { return hud_shown_; }
  bool engineShown() const { return engine_shown_; }
  QObject* engine() { return &engine_; }

  const QImage& image() const { return image_; }
  ImageView& view() { return view_; }
  const FastLaneConsumer& consumer() const { return consumer_; }
  // Emits viewChanged after a change of view().
  void ViewMoved() { Q_EMIT viewChanged(); }

 Q_SIGNALS:
  void imageChanged();
  void viewChanged();
  void layersChanged();
  void changed();  // texts and state: at a change of state, and ten times a
                   // second
  void said(const QString& text);  // a message for the user

 private:
  void TakeFrame(const FastLaneFrameEvent& event);
  void ShowFrame(const FastLaneFrameEvent& event);
  void TogglePause();
  void TellEngine();
  void StepTile(int by);
  void SaveImage();
  void ReadEval();

  const QString run_id_;
  const QString agent_id_;
  const RunTabOptions options_;
  FastLaneConsumer consumer_;
  EnginePanel engine_;
  QTimer texts_timer_;
  QTimer eval_timer_;
  QImage image_;  // the shown image
  QString hud_text_;
  QString step_text_;
  QString error_text_;
  QString eval_text_;
  QString job_text_;
  std::optional<FastLaneFrameEvent> newest_;  // since the pause
  Playback playback_;
  ImageView view_;
  bool shown_ = false;
  bool hud_shown_ = true;
  bool engine_shown_ = false;
};

}  // namespace tandem
