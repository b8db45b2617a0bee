// Viewer: the window's model: the list of runs, the tabs, the keys.
//
// Data flow: RunList -> runs; the user's keys and clicks -> Perform -> tabs,
// theme, help; a tab's text -> message. Main.qml binds to it as `viewer`.
// Ownership: main; GUI thread.

#pragma once

#include <QList>
#include <QObject>
#include <QPointer>
#include <QProcess>
#include <QQuickWindow>
#include <QString>
#include <QTimer>
#include <QVariantList>
#include <map>
#include <set>
#include <string>

#include "viz/core/key_map.h"
#include "viz/core/run_list.h"
#include "viz/core/viewer_options.h"
#include "viz/inspect/async_engine_control.h"
#include "viz/viewer/daemon_runs_model.h"
#include "viz/viewer/run_tab.h"

namespace tandem {

class Viewer : public QObject {
  Q_OBJECT
  Q_PROPERTY(QList<QObject*> tabs READ tabs NOTIFY tabsChanged)
  // kStartPage, or an index of tabs
  Q_PROPERTY(int current READ current WRITE SetCurrent NOTIFY currentChanged)
  // Maps: run, name (of it, for display), kind, details, state, moving,
  // watchable
  Q_PROPERTY(QVariantList runs READ runs NOTIFY runsChanged)
  // The start page shows the daemon's runs
  Q_PROPERTY(bool slowLane READ slowLane NOTIFY looksChanged)
  Q_PROPERTY(QObject* daemon READ daemon CONSTANT)  // a DaemonRunsModel
  Q_PROPERTY(int chosenRun READ chosenRun NOTIFY runsChanged)
  Q_PROPERTY(bool dark READ dark NOTIFY looksChanged)
  Q_PROPERTY(bool imageOnly READ imageOnly NOTIFY looksChanged)
  Q_PROPERTY(bool helpShown READ helpShown NOTIFY looksChanged)
  Q_PROPERTY(bool shortcuts READ shortcuts CONSTANT)
  Q_PROPERTY(QVariantList keys READ keys CONSTANT)  // maps: keys, does
  Q_PROPERTY(QString message READ message NOTIFY messageChanged)
  Q_PROPERTY(int initialWidth READ initialWidth CONSTANT)
  Q_PROPERTY(int initialHeight READ initialHeight CONSTANT)

 public:
  static constexpr int kStartPage = -1;

  explicit Viewer(const ViewerOptions& options, QObject* parent = nullptr);
  ~Viewer() override;  // ends the tabs, which use the members

  // Sets the window for keys and snapshots.
  void SetWindow(QQuickWindow* window);

  QList<QObject*> tabs() const;
  int current() const { return current_; }
  QVariantList runs() const { return runs_; }
  bool slowLane() const { return slow_lane_; }
  QObject* daemon() { return &daemon_; }
  int chosenRun() const { return chosen_run_; }
  bool dark() const { return dark_; }
  bool imageOnly() const { return image_only_; }
  bool helpShown() const { return help_shown_; }
  bool shortcuts() const { return options_.shortcuts; }
  QVariantList keys() const;
  QString message() const { return message_; }
  int initialWidth() const { return static_cast<int>(options_.width); }
  int initialHeight() const { return static_cast<int>(options_.height); }

  const QList<RunTab*>& run_tabs() const { return tabs_; }

  // An index out of range means the start page.
  void SetCurrent(int index);
  void Perform(Action action);
  // Saves the window as PNG, with a note on its renderer. Returns false if the
  // file cannot be written.
  bool SaveWindow(const QString& path);

  // Shows a run: its tab, or a new one.
  Q_INVOKABLE void open(const QString& run);
  Q_INVOKABLE void openChosen();  // no effect without runs
  Q_INVOKABLE void close(int index);
  // Opens the page of the shown or chosen run in the user's browser.
  void OpenPage();
  // For buttons that represent keys.
  Q_INVOKABLE void press(const QString& key);

 Q_SIGNALS:
  void tabsChanged();
  void currentChanged();
  void runsChanged();
  void looksChanged();
  void messageChanged();
  void quitWanted();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  RunTab* CurrentTab() const;
  void ScanRuns();
  // Opens the frames of the daemon's runs that want it, each once, and shows
  // their states in their tabs.
  void FollowDaemon();
  void ShowPage();
  QString ChosenRun() const;  // of the list; "": none
  RunTab* AddTab(const QString& run);
  void TellTabs();
  // Whether the keyboard's focus is in a text field.
  bool IsTyping() const;
  void Say(const QString& text);

  const ViewerOptions options_;
  // Of all tabs.
  AsyncEngineControl engines_{"viewer"};
  DaemonRunsModel daemon_;
  QPointer<QQuickWindow> window_;
  // Of the daemon's runs, by their ids: the frames that belong to one.
  std::map<std::string, QString> frames_of_;
  std::set<std::string> opened_;  // runs whose frames were opened
  RunList run_list_;
  QVariantList runs_;
  int chosen_run_ = 0;
  QTimer scan_timer_;
  QList<RunTab*> tabs_;
  int current_ = kStartPage;
  bool dark_;
  bool image_only_;
  bool help_shown_ = false;
  bool slow_lane_ = false;
  QString message_;
  QTimer message_timer_;
  QProcess page_;         // tandem-view, until the viewer ends
  QString page_address_;  // with its token; "": not known yet
  bool page_wanted_ = false;
};

}  // namespace tandem
