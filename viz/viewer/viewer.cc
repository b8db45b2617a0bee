#include "viz/viewer/viewer.h"

#include <signal.h>
#include <unistd.h>

#include <QDesktopServices>
#include <QImage>
#include <QKeyEvent>
#include <QQuickItem>
#include <QSGRendererInterface>
#include <QScreen>
#include <QUrl>
#include <QVariantMap>
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/os/end_with_parent.h"
#include "base/printable.h"
#include "viz/core/program_start.h"
#include "viz/core/quantities.h"

namespace tandem {
namespace {

constexpr int kScanMs = 1000;
constexpr int kMessageMs = 4000;
constexpr int kPageEndMs = 5000;

QString Details(const RunEntry& run) {
  QStringList parts;
  if (!run.task.empty()) parts << Text(Printable(run.task));
  if (run.num_envs > 0) {
    parts << QStringLiteral("%1 environment%2")
                 .arg(run.num_envs)
                 .arg(run.num_envs == 1 ? QString() : QStringLiteral("s"));
  }
  if (run.width > 0) {
    parts << QStringLiteral("%1 × %2 %3")
                 .arg(run.width)
                 .arg(run.height)
                 .arg(run.channels == 4 ? QStringLiteral("RGBA")
                                        : QStringLiteral("RGB"));
  } else {
    parts << Text(Printable(run.problem));
  }
  return parts.join(QStringLiteral("  ·  "));
}

QVariantMap RowOf(const RunEntry& run, int64_t now_ns) {
  const QString state =
      run.is_anothers ? QStringLiteral("another user's")
      : run.moving    ? QStringLiteral("running")
                      : QStringLiteral("still for ") +
                         Text(ShortAgeText(now_ns - run.still_since_ns));
  return {{QStringLiteral("run"), Text(run.run)},
          {QStringLiteral("name"), Text(Printable(run.run))},
          {QStringLiteral("details"), Details(run)},
          {QStringLiteral("kind"), run.kind == RunEntry::Kind::kRegion
                                       ? QStringLiteral("engine")
                                       : QStringLiteral("fast lane")},
          {QStringLiteral("state"), state},
          {QStringLiteral("moving"), run.moving},
          {QStringLiteral("watchable"), run.width > 0}};
}

}  // namespace

Viewer::Viewer(const ViewerOptions& options, QObject* parent)
    : QObject(parent),
      options_(options),
      daemon_(options.daemon.target),
      dark_(options.dark),
      image_only_(options.image_only) {
  for (const std::string& run : options_.runs) open(Text(run));
  if (!tabs_.empty()) SetCurrent(0);
  connect(&scan_timer_, &QTimer::timeout, this, &Viewer::ScanRuns);
  scan_timer_.start(kScanMs);
  ScanRuns();
  page_.setProcessChannelMode(QProcess::ForwardedErrorChannel);
  // main blocks the signals that end the viewer.
  page_.setChildProcessModifier([parent = getpid()] {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    EndWithParent(SIGTERM, parent);
  });
  connect(&page_, &QProcess::readyReadStandardOutput, this, &Viewer::ShowPage);
  connect(&page_, &QProcess::finished, this,
          [this] { Say(QStringLiteral("tandem-view has ended")); });
  message_timer_.setSingleShot(true);
  connect(&message_timer_, &QTimer::timeout, this, [this] { Say({}); });
}

Viewer::~Viewer() {
  page_.disconnect(this);
  page_.terminate();
  page_.waitForFinished(kPageEndMs);
  qDeleteAll(tabs_);
}

void Viewer::SetWindow(QQuickWindow* window) {
  window_ = window;
  window_->installEventFilter(this);
  connect(window_, &QWindow::visibilityChanged, this, &Viewer::TellTabs);
  connect(window_, &QWindow::screenChanged, this, &Viewer::TellTabs);
  TellTabs();
}

QList<QObject*> Viewer::tabs() const {
  return QList<QObject*>(tabs_.begin(), tabs_.end());
}

QVariantList Viewer::keys() const {
  QVariantList rows;
  for (const KeyRow& row : KeyTable()) {
    rows << QVariantMap{{QStringLiteral("keys"), Text(row.keys)},
                        {QStringLiteral("does"), Text(row.does)}};
  }
  return rows;
}

RunTab* Viewer::CurrentTab() const {
  return current_ == kStartPage ? nullptr : tabs_[current_];
}

void Viewer::SetCurrent(int index) {
  if (index < 0 || index >= tabs_.size()) index = kStartPage;
  const bool is_other = index != current_;
  current_ = index;
  if (current_ == kStartPage) ScanRuns();
  TellTabs();
  if (is_other) Q_EMIT currentChanged();
}

void Viewer::open(const QString& run) {
  for (qsizetype i = 0; i < tabs_.size(); ++i) {
    if (tabs_[i]->runId() == run) return SetCurrent(static_cast<int>(i));
  }
  AddTab(run);
  SetCurrent(static_cast<int>(tabs_.size()) - 1);
}

RunTab* Viewer::AddTab(const QString& run) {
  const auto given = std::ranges::find(options_.runs, run.toStdString());
  const auto at = static_cast<size_t>(given - options_.runs.begin());
  auto* tab = new RunTab(
      run, Text(ValueOf(options_.agent_ids, at)),
      {.mode_label = Text(options_.mode_label),
       .policy_eval = ValueOf(options_.run_modes, at) == "policy_eval",
       .eval_summary = Text(ValueOf(options_.eval_summaries, at)),
       .snapshots = Text(options_.snapshots),
       .engines = &engines_},
      this);
  connect(tab, &RunTab::said, this, &Viewer::Say);
  tabs_ << tab;
  Q_EMIT tabsChanged();
  return tab;
}

QString Viewer::ChosenRun() const {
  return runs_.isEmpty()
             ? QString()
             : runs_[chosen_run_].toMap()[QStringLiteral("run")].toString();
}

void Viewer::openChosen() {
  if (!runs_.isEmpty()) open(ChosenRun());
}

void Viewer::close(int index) {
  if (index < 0 || index >= tabs_.size()) return;
  RunTab* tab = tabs_.takeAt(index);
  // If the shown tab closes, its left neighbour is shown.
  const int now = current_ >= index && current_ != kStartPage
                      ? std::max(current_ - 1, tabs_.isEmpty() ? -1 : 0)
                      : current_;
  current_ = kStartPage;  // removes QML's bindings to the tab
  Q_EMIT currentChanged();
  Q_EMIT tabsChanged();
  SetCurrent(now);
  tab->deleteLater();
}

void Viewer::press(const QString& key) {
  if (const std::optional<Action> action = ActionOf(key.toStdString())) {
    Perform(*action);
  }
}

void Viewer::Perform(Action action) {
  const int tabs = static_cast<int>(tabs_.size());
  switch (action) {
    case Action::kHelp:
      help_shown_ = !help_shown_;
      return Q_EMIT looksChanged();
    case Action::kTheme:
      dark_ = !dark_;
      return Q_EMIT looksChanged();
    case Action::kImageOnly:
      image_only_ = !image_only_;
      return Q_EMIT looksChanged();
    case Action::kStartPage:
      return SetCurrent(kStartPage);
    case Action::kSlowLane:
      // From another tab it leads to the daemon's runs, not back to the list.
      slow_lane_ = current_ != kStartPage || !slow_lane_;
      SetCurrent(kStartPage);  // also tells the daemon's board
      return Q_EMIT looksChanged();
    case Action::kPage:
      return OpenPage();
    case Action::kNextTab:  // the start page counts as a tab
      return SetCurrent(current_ + 1 >= tabs ? kStartPage : current_ + 1);
    case Action::kPreviousTab:
      return SetCurrent(current_ == kStartPage ? tabs - 1 : current_ - 1);
    case Action::kCloseTab:
      return close(current_);
    case Action::kWindowSnapshot:
      if (window_ == nullptr) return;
      return Say(SaveSnapshot(
          Text(options_.snapshots), QStringLiteral("viewer"),
          [this](const QString& path) { return SaveWindow(path); }));
    case Action::kFullScreen:
      if (window_ == nullptr) return;
      return window_->setVisibility(window_->visibility() == QWindow::FullScreen
                                        ? QWindow::Windowed
                                        : QWindow::FullScreen);
    case Action::kQuit:
      return Q_EMIT quitWanted();
    default:
      break;
  }
  if (action == Action::kGrid && help_shown_) {
    help_shown_ = false;
    return Q_EMIT looksChanged();
  }
  if (RunTab* tab = CurrentTab()) {
    tab->Perform(action);
    return;
  }
  const int runs = static_cast<int>(runs_.size());
  if (runs == 0 || slow_lane_) return;
  if (action == Action::kOpen) {
    openChosen();
  } else if (action == Action::kNextRun || action == Action::kPreviousRun) {
    chosen_run_ = std::clamp(
        chosen_run_ + (action == Action::kNextRun ? 1 : -1), 0, runs - 1);
    Q_EMIT runsChanged();
  }
}

void Viewer::OpenPage() {
  page_wanted_ = true;
  if (page_.state() != QProcess::NotRunning) return ShowPage();
  const absl::StatusOr<std::string> program =
      FindProgram("tandem-view", "viz/web/");
  if (!program.ok()) return Say(Text(program.status().message()));
  page_address_.clear();
  page_.start(
      Text(*program),
      {QStringLiteral("--listen=127.0.0.1:0"), QStringLiteral("--control"),
       QStringLiteral("--nodaemon"),
       QStringLiteral("--daemon_target=") + Text(options_.daemon.target),
       QStringLiteral("--recordings=") + Text(options_.snapshots)});
}

void Viewer::ShowPage() {
  if (page_address_.isEmpty() && page_.canReadLine()) {
    page_address_ = QString::fromUtf8(page_.readLine()).trimmed();
  }
  if (page_address_.isEmpty() || !page_wanted_) return;
  page_wanted_ = false;
  const QString run = CurrentTab() != nullptr ? CurrentTab()->runId()
                      : slow_lane_            ? daemon_.chosen()
                                              : ChosenRun();
  QString address = page_address_;
  if (!run.isEmpty()) {
    address += QStringLiteral("&run=") +
               QString::fromLatin1(QUrl::toPercentEncoding(run));
  }
  if (!QDesktopServices::openUrl(QUrl(address))) {
    Say(QStringLiteral("Open in a browser: ") + address);
  }
}

bool Viewer::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::KeyPress || !options_.shortcuts) {
    return QObject::eventFilter(watched, event);
  }
  const auto* press = static_cast<QKeyEvent*>(event);
  if (IsTyping()) {
    if (press->key() != Qt::Key_Escape) return false;
    window_->activeFocusItem()->setFocus(false);
    return true;
  }
  const std::optional<Action> action =
      ActionOf(KeyName(press->key(), press->modifiers()).toStdString());
  if (!action.has_value()) return QObject::eventFilter(watched, event);
  Perform(*action);
  return true;
}

bool Viewer::IsTyping() const {
  const QQuickItem* const item =
      window_ == nullptr ? nullptr : window_->activeFocusItem();
  return item != nullptr && item->inherits("QQuickTextEdit");
}

void Viewer::ScanRuns() {
  const bool follows = !options_.daemon.target.empty();
  if (current_ != kStartPage && !follows) return;
  const int64_t now_ns = MonotonicNanos();
  const std::vector<RunEntry>& all = run_list_.Scan(now_ns);
  for (const RunEntry& run : all) {
    if (follows && run.width > 0 && !run.daemon_run.empty()) {
      frames_of_.insert_or_assign(run.daemon_run, Text(run.run));
    }
  }
  if (follows) FollowDaemon();
  if (current_ != kStartPage) return;
  const QString chosen = ChosenRun();
  runs_.clear();
  chosen_run_ = 0;
  for (const RunEntry& run : all) {
    if (Text(run.run) == chosen) chosen_run_ = static_cast<int>(runs_.size());
    runs_ << RowOf(run, now_ns);
  }
  Q_EMIT runsChanged();
}

void Viewer::FollowDaemon() {
  const AsyncDaemonClient::List* const list = daemon_.list();
  if (list == nullptr) return;
  for (const DaemonRun& run : list->runs) {
    const auto frames = frames_of_.find(run.run_id);
    if (frames == frames_of_.end()) continue;
    const auto shows = [&](const RunTab* tab) {
      return tab->runId() == frames->second;
    };
    auto tab = std::ranges::find_if(tabs_, shows);
    if (run.wants_frames && !run.has_ended &&
        opened_.insert(run.run_id).second && tab == tabs_.end()) {
      AddTab(frames->second);
      TellTabs();
      // Another run that is shown stays shown.
      if (current_ == kStartPage && !slow_lane_) {
        SetCurrent(static_cast<int>(tabs_.size()) - 1);
      }
      tab = std::prev(tabs_.end());
    }
    if (tab != tabs_.end()) (*tab)->ShowJob(run);
  }
}

void Viewer::TellTabs() {
  const bool seen =
      window_ == nullptr || (window_->visibility() != QWindow::Minimized &&
                             window_->visibility() != QWindow::Hidden);
  const double refresh_hz = window_ != nullptr && window_->screen() != nullptr
                                ? window_->screen()->refreshRate()
                                : 0;
  for (qsizetype i = 0; i < tabs_.size(); ++i) {
    tabs_[i]->SetShown(seen && i == current_, refresh_hz);
  }
  daemon_.SetShown(seen && current_ == kStartPage && slow_lane_);
}

void Viewer::Say(const QString& text) {
  message_ = text;
  if (!text.isEmpty()) message_timer_.start(kMessageMs);
  Q_EMIT messageChanged();
}

bool Viewer::SaveWindow(const QString& path) {
  QImage image = window_->grabWindow();
  const bool by_qt = window_->rendererInterface()->graphicsApi() ==
                     QSGRendererInterface::Software;
  image.setText(QStringLiteral("Renderer"),
                by_qt ? QStringLiteral("Qt") : QStringLiteral("OpenGL"));
  return image.save(path, "PNG");
}

}  // namespace tandem
