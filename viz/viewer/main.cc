// The viewer: a window onto what runs on this machine.
#include <QGuiApplication>
#include <QQmlApplicationEngine>
#include <QVariant>
#include <QtQml>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "viz/core/viewer_options.h"
#include "viz/viewer/graphics.h"
#include "viz/viewer/scene.h"
#include "viz/viewer/snapshot_job.h"
#include "viz/viewer/stop_signals.h"
#include "viz/viewer/viewer.h"

namespace tandem {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadUsage = 2;

// Qt's own word on what went wrong, then what to do about it. A fatal message
// would end in abort and a core dump.
void PrintQtMessage(QtMsgType type, const QMessageLogContext&,
                    const QString& text) {
  if (type == QtDebugMsg || type == QtInfoMsg) return;
  // Said by Qt of every shell without a session, root's for example.
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

int Main(int argc, char** argv) {
  StopSignals signals;
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  const absl::StatusOr<ViewerOptions> options = ParseViewerOptions(words);
  if (!options.ok()) {
    std::fprintf(stderr, "viewer: %s\n",
                 std::string(options.status().message()).c_str());
    return kExitBadUsage;
  }
  if (options->help_wanted) {
    std::fputs(ViewerHelp().c_str(), stdout);
    return 0;
  }
  if (options->offscreen) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qputenv("QT_QUICK_BACKEND", "software");
  }
  qInstallMessageHandler(PrintQtMessage);
  int no_arguments = 1;
  QGuiApplication app(no_arguments, argv);
  ChooseGraphics();
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
