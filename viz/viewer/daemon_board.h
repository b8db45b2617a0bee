// DaemonBoard: the daemon's runs, for QML.
//
// Data flow: DaemonDesk's list -> runs -> SlowLanePage.qml; the user's clicks
// -> DaemonDesk::Act -> said; an EventFollower -> events, and plots of the
// run's episodes; RunPages -> its tables and logs.
// Ownership: the Viewer; GUI thread.
//
//   DaemonBoard board(DaemonTarget());
//   board.SetShown(true);
//   board.submit("{...}");

#ifndef TANDEM_VIZ_VIEWER_DAEMON_BOARD_H_
#define TANDEM_VIZ_VIEWER_DAEMON_BOARD_H_

#include <QObject>
#include <QString>
#include <QTimer>
#include <QVariantList>
#include <QVariantMap>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "viz/core/background.h"
#include "viz/core/daemon_desk.h"
#include "viz/core/event_follower.h"
#include "viz/viewer/plot_source.h"
#include "viz/viewer/run_pages.h"

namespace tandem {

class DaemonBoard : public QObject, public PlotSource {
  Q_OBJECT
  Q_PROPERTY(QString target READ target CONSTANT)    // "": no daemon
  Q_PROPERTY(QString example READ example CONSTANT)  // of a configuration
  Q_PROPERTY(QString problem READ problem NOTIFY changed)
  // The newest first; maps: id, name, state, ended, paused, holdable, reason,
  // facts, evaluation
  Q_PROPERTY(QVariantList runs READ runs NOTIFY changed)
  Q_PROPERTY(QString followed READ followed NOTIFY changed)  // id; "": none
  // Of the followed run; maps: number, episode, step, reward
  Q_PROPERTY(QVariantList steps READ steps NOTIFY eventsChanged)
  Q_PROPERTY(QString eventsText READ eventsText NOTIFY eventsChanged)
  Q_PROPERTY(bool hasEpisodes READ hasEpisodes NOTIFY eventsChanged)
  Q_PROPERTY(QObject* pages READ pages CONSTANT)  // RunPages

 public:
  static constexpr int kReadMs = 250;
  static constexpr int kHiddenReadMs = 1000;
  static constexpr int kResultMs = 20;
  static constexpr int kShownSteps = 10;

  explicit DaemonBoard(const std::string& target, QObject* parent = nullptr);

  // A shown board reads more often: its changes are seen at once.
  void SetShown(bool shown);
  // The newest list; nullptr: none yet, or no daemon.
  const DaemonDesk::List* list() const { return shown_list_.get(); }

  QString target() const;
  QString example() const;
  QString problem() const { return problem_; }
  QVariantList runs() const { return runs_; }
  QString followed() const { return followed_; }
  QVariantList steps() const { return steps_; }
  QString eventsText() const { return events_text_; }
  bool hasEpisodes() const { return !events_.returns.buckets().empty(); }
  QObject* pages() { return &pages_; }

  // Of the followed run: "return" or "episode length", over its episodes.
  const SampleHistory* History(const QString& series) const override;
  double Newest(const QString& series) const override;
  QString SpanText(const SampleHistory& history) const override;

  // Each says its result.
  Q_INVOKABLE void submit(const QString& config);
  Q_INVOKABLE void cancel(const QString& run_id);
  Q_INVOKABLE void hold(const QString& run_id, bool on);
  // Returns the file's text; "" after a failure, which it says.
  Q_INVOKABLE QString load(const QString& path);
  // Shows the events of a run, in place of another's, and no page; "": none.
  Q_INVOKABLE void follow(const QString& run_id);

 Q_SIGNALS:
  void changed();
  void eventsChanged();
  void said(const QString& text);

 private:
  void Act(const DaemonAction& action);
  void Read();
  void ReadEvents();
  void TakeResults();

  const std::unique_ptr<DaemonDesk> desk_;  // nullptr: no daemon
  QString problem_;
  QVariantList runs_;
  std::shared_ptr<const DaemonDesk::List> shown_list_;
  std::vector<std::shared_ptr<Pending>> pending_;
  int64_t acted_ns_ = 0;  // the time of the last result
  QString followed_;
  std::shared_ptr<EventFollower> follower_;
  EventFollower::Events events_;
  QVariantList steps_;
  QString events_text_;
  RunPages pages_{desk_.get()};
  QTimer read_timer_;
  QTimer result_timer_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_DAEMON_BOARD_H_
