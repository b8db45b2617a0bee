// RunPages: pages of one run's tables and parts of its logs, for QML.
//
// Data flow: DaemonDesk::Ask, in the background -> rows or text ->
// RunDetails.qml; the user's clicks -> another page.
// Ownership: the DaemonBoard; GUI thread.
//
//   RunPages pages(&desk);
//   pages.SetRun(run_id);
//   pages.show("episodes");

#ifndef TANDEM_VIZ_VIEWER_RUN_PAGES_H_
#define TANDEM_VIZ_VIEWER_RUN_PAGES_H_

#include <QObject>
#include <QString>
#include <QTimer>
#include <QVariantList>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viz/core/background.h"
#include "viz/core/daemon_client.h"
#include "viz/core/daemon_desk.h"
#include "viz/core/log_tail.h"

namespace tandem {

class RunPages : public QObject {
  Q_OBJECT
  // A table, "steps" or "episodes"; a log, "stderr", "stdout" or "proxy"; "":
  // nothing.
  Q_PROPERTY(QString kind READ kind NOTIFY changed)
  Q_PROPERTY(bool isLog READ isLog NOTIFY changed)
  // Of a table; maps: number, episode, step, value, time
  Q_PROPERTY(QVariantList rows READ rows NOTIFY changed)
  Q_PROPERTY(QString text READ text NOTIFY changed)    // of a log
  Q_PROPERTY(QString place READ place NOTIFY changed)  // or why it has none

 public:
  static constexpr uint32_t kRows = 12;  // of a page
  static constexpr int kAnswerMs = 20;
  static constexpr int64_t kRefreshNs = 1'000'000'000;

  // `desk`: as long as this object; nullptr: it has no run.
  explicit RunPages(DaemonDesk* desk, QObject* parent = nullptr);

  QString kind() const { return kind_; }
  bool isLog() const { return log_.has_value(); }
  QVariantList rows() const { return rows_; }
  QString text() const { return text_; }
  QString place() const { return place_; }

  // Shows nothing of this run yet.
  void SetRun(const std::string& run_id);
  // Reads the newest part of a log again, if it is shown, once a second.
  void Refresh(int64_t now_ns);

  // Shows the first page of a table, or the newest part of a log.
  Q_INVOKABLE void show(const QString& kind);
  Q_INVOKABLE void first();
  Q_INVOKABLE void earlier();
  Q_INVOKABLE void later();  // of a log: the newest part
  Q_INVOKABLE void last();
  // The page that begins with a row's number; a text that is no number: 1.
  Q_INVOKABLE void goTo(const QString& number);

 Q_SIGNALS:
  void changed();

 private:
  struct Answer {
    std::vector<DaemonRow> rows;
    LogTail log;
  };

  uint64_t Count() const;  // of the table's rows
  void GoTo(uint64_t row);
  void Ask();
  void TakeAnswer();
  void ShowRows();
  void ShowLog();

  DaemonDesk* const desk_;
  std::string run_id_;
  QString kind_;
  std::optional<LogKind> log_;        // nullopt: a table
  uint64_t first_ = 1;                // row
  std::optional<uint64_t> end_;       // of the log's part; nullopt: its end
  std::shared_ptr<Pending> pending_;  // of the newest question
  std::shared_ptr<Answer> answer_;    // of the newest question
  int64_t asked_ns_ = 0;
  QVariantList rows_;
  QString text_;
  QString place_;
  QTimer timer_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_RUN_PAGES_H_
