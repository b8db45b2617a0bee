// DaemonRunsModel: the daemon's runs, for QML.
//
// Data flow: AsyncDaemonClient's list -> runs -> DaemonRuns.qml; the user's
// click -> chosen.
// Ownership: the Viewer; GUI thread.

#pragma once

#include <QObject>
#include <QString>
#include <QTimer>
#include <QVariantList>
#include <memory>
#include <string>

#include "viz/core/async_daemon_client.h"

namespace tandem {

class DaemonRunsModel : public QObject {
  Q_OBJECT
  Q_PROPERTY(QString target READ target CONSTANT)  // "": no daemon
  Q_PROPERTY(QString problem READ problem NOTIFY changed)
  // The newest first; maps: id, name, state, reason, facts, evaluation
  Q_PROPERTY(QVariantList runs READ runs NOTIFY changed)
  Q_PROPERTY(QString chosen MEMBER chosen_ NOTIFY changed)  // id; "": none

 public:
  static constexpr int kReadMs = 250;
  static constexpr int kHiddenReadMs = 1000;

  explicit DaemonRunsModel(const std::string& target,
                           QObject* parent = nullptr);

  // A shown list is read more often.
  void SetShown(bool shown);
  // The newest list; nullptr: none yet, or no daemon.
  const AsyncDaemonClient::List* list() const { return shown_list_.get(); }

  QString target() const;
  QString problem() const { return problem_; }
  QVariantList runs() const { return runs_; }
  QString chosen() const { return chosen_; }

 Q_SIGNALS:
  void changed();

 private:
  void Read();

  const std::unique_ptr<AsyncDaemonClient> client_;  // nullptr: no daemon
  QString problem_;
  QVariantList runs_;
  std::shared_ptr<const AsyncDaemonClient::List> shown_list_;
  QString chosen_;
  QTimer read_timer_;
};

}  // namespace tandem
