// The viewer as scripts and people start it: command line, exit codes,
// snapshots without a display, Ctrl-C.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <QCoreApplication>
#include <QImage>
#include <QProcess>
#include <QProcessEnvironment>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/core/daemon_client.h"
#include "viz/testing/pattern.h"
#include "viz/testing/pattern_check.h"
#include "viz/testing/readers_lock.h"
#include "viz/testing/virtual_display.h"

namespace tandem {
namespace {

constexpr int kWatchdogMs = 60'000;

struct Ended {
  int code = -1;  // -1: ended by a signal.
  QString out;
  QString error;
};

class ViewerCommandTest : public testing::Test {
 protected:
  std::unique_ptr<QProcess> Start(
      const QStringList& arguments,
      const QMap<QString, QString>& environment = {}) {
    auto process = std::make_unique<QProcess>();
    QProcessEnvironment all = QProcessEnvironment::systemEnvironment();
    all.remove(QStringLiteral("DISPLAY"));
    all.remove(QStringLiteral("WAYLAND_DISPLAY"));
    // Without a writable folder Fontconfig reports on stderr that it cannot
    // cache the machine's fonts.
    all.insert(QStringLiteral("XDG_CACHE_HOME"), folder_.path());
    for (auto at = environment.begin(); at != environment.end(); ++at) {
      all.insert(at.key(), at.value());
    }
    process->setProcessEnvironment(all);
    process->start(QStringLiteral("viz/viewer/viewer"), arguments);
    EXPECT_TRUE(process->waitForStarted(kWatchdogMs));
    return process;
  }
  static Ended Await(QProcess& process) {
    EXPECT_TRUE(process.waitForFinished(kWatchdogMs));
    return {
        process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
        QString::fromUtf8(process.readAllStandardOutput()),
        QString::fromUtf8(process.readAllStandardError())};
  }
  Ended Run(const QStringList& arguments,
            const QMap<QString, QString>& environment = {}) {
    return Await(*Start(arguments, environment));
  }

  // A window without a display and without --snapshot.
  static QMap<QString, QString> Offscreen() {
    return {{QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen")},
            {QStringLiteral("QT_QUICK_BACKEND"), QStringLiteral("software")}};
  }

  static void AwaitWatched(const std::string& path, bool watched) {
    const int64_t begin_ns = MonotonicNanos();
    while (ReadersLockHeld(path) != watched) {
      ASSERT_LT(MonotonicNanos() - begin_ns, kWatchdogMs * 1'000'000LL);
      const timespec wait = {0, 5'000'000};
      nanosleep(&wait, nullptr);
    }
  }

  QString run() const { return QString::fromStdString(run_); }
  QString File(const char* name) const {
    return folder_.filePath(QString::fromLatin1(name));
  }

  const std::string run_ = UniqueRegionName("command");
  const QTemporaryDir folder_;
};

TEST_F(ViewerCommandTest, PrintsHelp) {
  const Ended ended = Run({QStringLiteral("--help")});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.error, QString());
  for (const char* word :
       {"--run=", "--offscreen", "--shortcuts", "stale", "Space", "Examples"}) {
    EXPECT_TRUE(ended.out.contains(QString::fromLatin1(word))) << word;
  }
}

TEST_F(ViewerCommandTest, RefusesBadUsageInOneLine) {
  for (const QString& flag :
       {QStringLiteral("--nope"), QStringLiteral("--offscreen"),
        QStringLiteral("--size=3")}) {
    const Ended ended = Run({flag});
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.out, QString());
    EXPECT_EQ(ended.error.count(QLatin1Char('\n')), 1);
    EXPECT_TRUE(ended.error.contains(QStringLiteral("expected")));
  }
}

TEST_F(ViewerCommandTest, SavesTheRightPixelsWithoutADisplay) {
  for (const uint32_t channels : {3u, 4u}) {
    PatternRun pattern = {.run = run_, .hz = 10};
    pattern.geometry.width = 37;
    pattern.geometry.height = 23;
    pattern.geometry.channels = channels;
    const Publisher publisher(pattern);
    const QString file = File("out.png");
    const Ended ended =
        Run({QStringLiteral("--run=") + run(), QStringLiteral("--offscreen"),
             QStringLiteral("--image_only"), QStringLiteral("--size=640x480"),
             QStringLiteral("--after=3"), QStringLiteral("--snapshot"), file});
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.error, QString());
    const PatternSeen seen = CheckPattern(QImage(file), QRect(0, 0, 640, 480),
                                          pattern.geometry, {0, 0, 37, 23});
    EXPECT_EQ(seen.wrong, "");
    EXPECT_GT(seen.checked, 200'000);
  }
}

// The deadline applies to frames only: the list may take longer.
TEST_F(ViewerCommandTest, SavesListOfRunsForAnyDeadline) {
  for (const QString& deadline :
       {QStringLiteral("--timeout=30"), QStringLiteral("--timeout=0.01")}) {
    const QString file = File("list.png");
    const Ended ended =
        Run({QStringLiteral("--offscreen"), QStringLiteral("--snapshot"), file,
             QStringLiteral("--theme=light"), deadline});
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.error, QString());
    EXPECT_EQ(QImage(file).size(), QSize(1280, 800));
    QFile::remove(file);
  }
}

TEST_F(ViewerCommandTest, StartsADaemonThatGoesOn) {
  const QString target = QStringLiteral("unix:") + File("d.sock");
  const QStringList flags = {QStringLiteral("--data_dir=") + File("data"),
                             QStringLiteral("--daemon_target=") + target};
  // A snapshot starts no daemon.
  const Ended ended =
      Run(QStringList(flags) << QStringLiteral("--offscreen")
                             << QStringLiteral("--snapshot") << File("x.png"));
  EXPECT_EQ(ended.code, 0) << ended.error.toStdString();
  EXPECT_FALSE(QFile::exists(File("data")));
  const DaemonClient client(target.toStdString());
  const std::unique_ptr<QProcess> viewer = Start(flags, Offscreen());
  while (!client.ListRuns().ok()) {
    ASSERT_EQ(viewer->state(), QProcess::Running);
    viewer->waitForFinished(10);
  }
  viewer->terminate();
  EXPECT_EQ(Await(*viewer).code, 0);
  EXPECT_TRUE(client.ListRuns().ok());
  pid_t pid = 0;
  std::ifstream(File("data/daemon.pid").toStdString()) >> pid;
  ASSERT_GT(pid, 0);
  kill(pid, SIGTERM);
  while (kill(pid, 0) == 0) {
    const timespec wait = {0, 5'000'000};
    nanosleep(&wait, nullptr);
  }
}

TEST_F(ViewerCommandTest, MakesTheFolderOfSnapshotsOrRefusesIt) {
  const auto run = [&](const QString& folder) {
    return Run({QStringLiteral("--snapshots=") + folder,
                QStringLiteral("--offscreen"), QStringLiteral("--snapshot"),
                File("x.png")});
  };
  EXPECT_EQ(run(File("new/folder")).code, 0);
  EXPECT_TRUE(QFile::exists(File("new/folder")));
  const Ended refused = run(QStringLiteral("/proc/nowhere"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.error.contains(QStringLiteral("--snapshots")));
}

TEST_F(ViewerCommandTest, ReportsMissingFrameForSnapshot) {
  const Ended ended =
      Run({QStringLiteral("--run=") + run(), QStringLiteral("--offscreen"),
           QStringLiteral("--timeout=0.2"), QStringLiteral("--snapshot"),
           File("out.png")});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(ended.error.contains(QStringLiteral("fastlane-unavailable")));
  EXPECT_TRUE(ended.error.contains(run()));
  EXPECT_FALSE(QFile::exists(File("out.png")));
}

// An image from before the viewer's start does not satisfy a snapshot.
TEST_F(ViewerCommandTest, SavesNoOldImage) {
  PatternRun pattern = {.run = run_};
  pattern.still_after = 1;
  const Publisher publisher(pattern);
  const Ended ended =
      Run({QStringLiteral("--run=") + run(), QStringLiteral("--offscreen"),
           QStringLiteral("--timeout=5"), QStringLiteral("--snapshot"),
           File("out.png"), QStringLiteral("--after=2")});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(ended.error.contains(QStringLiteral("stale")))
      << ended.error.toStdString();
}

TEST_F(ViewerCommandTest, ReportsMissingSnapshotFolder) {
  const Ended ended =
      Run({QStringLiteral("--offscreen"), QStringLiteral("--snapshot"),
           QStringLiteral("/nowhere/out.png")});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(ended.error.contains(QStringLiteral("/nowhere/out.png")));
}

TEST_F(ViewerCommandTest, ExitsCleanlyOnASignal) {
  const Publisher publisher({.run = run_});
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::unique_ptr<QProcess> viewer =
        Start({QStringLiteral("--run=") + run(), QStringLiteral("--nodaemon")},
              Offscreen());
    AwaitWatched(publisher.path(), true);
    kill(static_cast<pid_t>(viewer->processId()), signal);
    const Ended ended = Await(*viewer);
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.error, QString());
    AwaitWatched(publisher.path(), false);
  }
}

// An X server without a graphics card, as over SSH.
TEST_F(ViewerCommandTest, UsesQtsRendererWithoutAGraphicsCard) {
  const VirtualDisplay display(1280, 800);
  const QString file = File("window.png");
  for (const auto& [backend, renderer] :
       {std::pair{QString(), QStringLiteral("Qt")},
        {QStringLiteral("rhi"), QStringLiteral("OpenGL")},
        {QStringLiteral("software"), QStringLiteral("Qt")}}) {
    const Ended ended =
        Run({QStringLiteral("--snapshot"), file},
            {{QStringLiteral("DISPLAY"), qEnvironmentVariable("DISPLAY")},
             {QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("xcb")},
             {QStringLiteral("QT_QUICK_BACKEND"), backend}});
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.error, QString());
    EXPECT_EQ(QImage(file).text(QStringLiteral("Renderer")), renderer);
    QFile::remove(file);
  }
}

TEST_F(ViewerCommandTest, ReportsMissingDisplay) {
  const Ended ended =
      Run({}, {{QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("xcb")}});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(ended.error.contains(QStringLiteral("--offscreen")));
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const QCoreApplication app(argc, argv);
  return RUN_ALL_TESTS();
}
