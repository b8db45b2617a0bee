// The viewer: a window that shows the runs of this machine.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <QByteArray>
#include <QGuiApplication>
#include <QObject>
#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLFunctions>
#include <QQuickWindow>
#include <QSocketNotifier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/stop_signals.h"
#include "base/os/unique_fd.h"
#include "program/grpc/library_log.h"
#include "viz/core/daemon_starter.h"
#include "viz/core/file_name.h"
#include "viz/core/viewer_options.h"
#include "viz/viewer/scene.h"
#include "viz/viewer/snapshot_job.h"
#include "viz/viewer/viewer.h"

namespace tandem {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadUsage = 2;

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "viewer: %s\n", std::string(status.message()).c_str());
  return code;
}

// Prints Qt's message, then the next action. Exits after a fatal message, for
// which Qt would abort and dump core.
void PrintQtMessage(QtMsgType type, const QMessageLogContext&,
                    const QString& text) {
  if (type == QtDebugMsg || type == QtInfoMsg) return;
  // Qt prints this in every shell without a session, such as root's.
  if (text.contains(QStringLiteral("XDG_RUNTIME_DIR"))) return;
  std::fprintf(stderr, "viewer: %s\n", qPrintable(text));
  if (type != QtFatalMsg) return;
  if (text.contains(QStringLiteral("platform plugin")))
    std::fputs(
        "viewer: expected a display that a window can be opened on; next: "
        "check "
        "DISPLAY (ssh -X sets it), or use --offscreen --snapshot=FILE.png\n",
        stderr);
  std::_Exit(kExitFailed);
}

// Makes StopSignals end Qt's event loop, as closing the window does. main makes
// it before any other thread: threads inherit blocked signals. Call Listen
// after the application exists.
class SignalListener {
 public:
  SignalListener() {
    sigemptyset(&signals_);
    for (const int signal : StopSignals()) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  // A second signal ends the process.
  void Listen(std::function<void()> stop) {
    file_ = UniqueFd(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
    notifier_ =
        std::make_unique<QSocketNotifier>(file_.get(), QSocketNotifier::Read);
    QObject::connect(notifier_.get(), &QSocketNotifier::activated,
                     [this, stop = std::move(stop)] {
                       notifier_->setEnabled(false);
                       signalfd_siginfo info;
                       (void)!read(file_.get(), &info, sizeof(info));
                       pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
                       stop();
                     });
  }

 private:
  sigset_t signals_;
  UniqueFd file_;
  std::unique_ptr<QSocketNotifier> notifier_;
};

bool CardDraws() {
  QOpenGLContext context;
  if (!context.create()) return false;
  QOffscreenSurface surface;
  surface.create();
  if (!context.makeCurrent(&surface)) return false;
  const QByteArray renderer = reinterpret_cast<const char*>(
      context.functions()->glGetString(GL_RENDERER));
  context.doneCurrent();
  // Renderers on the processor: Mesa's (two), Google's, Microsoft's.
  for (const char* const by_processor :
       {"llvmpipe", "softpipe", "Software", "SwiftShader", "WARP"}) {
    if (renderer.contains(by_processor)) return false;
  }
  return true;
}

// Chooses OpenGL if a graphics card renders it; otherwise Qt's software
// renderer, for example over SSH and in virtual machines. That paints only
// changes; OpenGL on the processor paints the whole window for each frame and
// takes five times as long. QT_QUICK_BACKEND takes precedence. Call it after
// the application exists and before the window exists.
void ChooseGraphics() {
  if (!qEnvironmentVariableIsEmpty("QT_QUICK_BACKEND") || CardDraws()) return;
  QQuickWindow::setGraphicsApi(QSGRendererInterface::Software);
}

int Main(int argc, char** argv) {
  SignalListener signals;
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  const absl::StatusOr<ViewerOptions> options = ParseViewerOptions(words);
  if (!options.ok()) return Fail(options.status(), kExitBadUsage);
  if (options->help_wanted) {
    std::fputs(ViewerHelp().c_str(), stdout);
    return 0;
  }
  const absl::Status made = MakeFolder("--snapshots", options->snapshots);
  if (!made.ok()) return Fail(made, kExitFailed);
  if (options->offscreen) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qputenv("QT_QUICK_BACKEND", "software");
  }
  qInstallMessageHandler(PrintQtMessage);
  int no_arguments = 1;
  QGuiApplication app(no_arguments, argv);
  ChooseGraphics();
  RouteLibraryLog("viewer");
  const absl::Status started = StartWantedDaemon("viewer", options->daemon);
  if (!started.ok()) return Fail(started, kExitFailed);
  Viewer viewer(*options);
  Scene scene(&viewer);
  QObject::connect(&viewer, &Viewer::quitWanted, &app, &QCoreApplication::quit);
  signals.Listen([&] {
    QCoreApplication::exit(options->snapshot.empty() ? 0 : kExitFailed);
  });
  if (options->snapshot.empty()) return QGuiApplication::exec();
  SnapshotJob job(*options, &viewer);
  return QGuiApplication::exec();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
