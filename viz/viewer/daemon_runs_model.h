// DaemonRunsModel: the daemon's runs, with the steps and episodes of one of
// them, for QML.
//
// Data flow: AsyncDaemonClient's list -> runs -> DaemonRuns.qml; the user's
// click -> follow -> an EventFollower -> eventsText, steps.
// Ownership: the Viewer; GUI thread.

#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <QVariantList>
#include <memory>
#include <string>

#include "viz/core/async_daemon_client.h"
#include "viz/core/event_follower.h"

namespace tandem {

class DaemonRunsModel : public QObject {
  Q_OBJECT
  Q_PROPERTY(QString target READ target CONSTANT)  // "": no daemon
  Q_PROPERTY(QString problem READ problem NOTIFY changed)
  // The newest first; maps: id, name, state, reason, facts, evaluation
  Q_PROPERTY(QVariantList runs READ runs NOTIFY changed)
  Q_PROPERTY(QString followed READ followed NOTIFY changed)  // id; "": none
  // Of the followed run
  Q_PROPERTY(QString eventsText READ eventsText NOTIFY eventsChanged)
  Q_PROPERTY(QStringList steps READ steps NOTIFY eventsChanged)

 public:
  static constexpr int kReadMs = 250;
  static constexpr int kHiddenReadMs = 1000;
  static constexpr int kShownSteps = 10;

  explicit DaemonRunsModel(const std::string& target,
                           QObject* parent = nullptr);

  // A shown list is read more often.
  void SetShown(bool shown);
  // The newest list; nullptr: none yet, or no daemon.
  const AsyncDaemonClient::List* list() const { return shown_list_.get(); }

  QString target() const;
  QString problem() const { return problem_; }
  QVariantList runs() const { return runs_; }
  QString followed() const { return followed_; }
  QString eventsText() const { return events_text_; }
  QStringList steps() const { return steps_; }  // the newest first

  // Shows the events of a run, in place of another's; "": none.
  Q_INVOKABLE void follow(const QString& run_id);

 Q_SIGNALS:
  void changed();
  void eventsChanged();

 private:
  void Read();
  void ReadEvents();

  const std::unique_ptr<AsyncDaemonClient> client_;  // nullptr: no daemon
  QString problem_;
  QVariantList runs_;
  std::shared_ptr<const AsyncDaemonClient::List> shown_list_;
  QString followed_;
  std::shared_ptr<EventFollower> follower_;
  QString events_text_;
  QStringList steps_;
  QTimer read_timer_;
};

}  // namespace tandem
