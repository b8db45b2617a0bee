// The window's content, read from the X server's screen, and its status texts.
// The window draws by OpenGL; viewer_software_test uses Qt's software renderer.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <QGuiApplication>
#include <QImage>
#include <QPoint>
#include <QPointF>
#include <QQuickItem>
#include <QQuickWindow>
#include <QSGRendererInterface>
#include <QSignalSpy>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>
#include <QTimer>
#include <QVariant>
#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "base/os/unique_fd.h"
#include "viz/core/viewer_options.h"
#include "viz/testing/pattern.h"
#include "viz/viewer/fast_lane_consumer.h"
#include "viz/viewer/snapshot_job.h"
#include "viz/viewer/testing/viewer_fixture.h"

namespace tandem {
namespace {

TEST_F(ViewerTest, IsDrawnByTheRendererOfItsEnvironment) {
  Open({});
  EXPECT_EQ(window()->rendererInterface()->graphicsApi(),
            qgetenv("QT_QUICK_BACKEND") == "software"
                ? QSGRendererInterface::Software
                : QSGRendererInterface::OpenGL);
}

TEST_F(ViewerTest, BoxesHaveAVisibleEdgeAboveTheImage) {
  ViewerOptions options;
  options.width = 1180;
  options.height = 740;  // a dark strip above and below the image
  OpenRun(Slow(640, 480, 3), options);
  Await([&] { return tab()->hasImage(); });
  for (const char* const name : {"hudBox", "stateBox"}) {
    SCOPED_TRACE(name);
    const QQuickItem* const box = Item(QString::fromLatin1(name));
    ASSERT_NE(box, nullptr);
    const QPoint edge = box->mapToScene(QPointF(box->width() / 2, 0)).toPoint();
    ASSERT_LT(edge.y(), PointOf(0, 0).y());
    Await([&] {
      const QImage screen = GrabScreen();
      return screen.pixel(edge) != screen.pixel(edge - QPoint(0, 4));
    });
  }
}

TEST_F(ViewerTest, ShowsTheRightPixelsCornerToCorner) {
  PatternRun run = Slow(64, 48, 3);
  OpenRun(run, Bare());
  std::set<int> steps;  // The image changes.
  Await([&] {
    steps.insert(AwaitPattern(run));
    return steps.size() >= 3 || HasFailure();
  });
}

TEST_F(ViewerTest, ShowsAnySizeAndRgbaThroughRestarts) {
  PatternRun run = Slow(37, 23, 4);
  OpenRun(run, Bare());
  AwaitPattern(run);
  for (const std::array<uint32_t, 3>& size :
       {std::array<uint32_t, 3>{101, 3, 3},
        {3, 91, 4},
        {1, 1, 3},
        {199, 149, 4}}) {
    publisher_ = nullptr;
    run = Slow(size[0], size[1], size[2]);
    publisher_ = std::make_unique<Publisher>(run);
    Await([&] {
      return tab()->image().width() == static_cast<int>(size[0]) &&
             tab()->live();
    });
    AwaitPattern(run);
  }
}

TEST_F(ViewerTest, ShowsTheRightPixelsAfterAResizeOfTheWindow) {
  const PatternRun run = Slow(64, 48, 3);
  OpenRun(run, Bare());
  for (const QSize& size :
       {QSize(501, 333), QSize(333, 501), QSize(800, 600)}) {
    window()->resize(size);
    Await([&] { return window()->size() == size; });
    AwaitPattern(run);
  }
}

TEST_F(ViewerTest, PausesWhileTheRunGoesOn) {
  PatternRun run = {.run = run_};
  OpenRun(run);
  Press(Qt::Key_Space);
  EXPECT_TRUE(tab()->paused());
  EXPECT_FALSE(tab()->live());
  const qint64 shown = tab()->image().cacheKey();
  const QString step = tab()->stepText();
  const uint64_t frames = tab()->consumer().watch().frames();
  Await([&] { return tab()->consumer().watch().frames() > frames + 20; });
  EXPECT_EQ(tab()->image().cacheKey(), shown);
  EXPECT_EQ(tab()->stepText(), step);
  Await([&] { return TextOf("state").startsWith(QStringLiteral("PAUSED")); });
  Press(Qt::Key_Space);
  EXPECT_FALSE(tab()->paused());
  EXPECT_NE(tab()->stepText(), step);
  Await([&] { return tab()->live(); });
  Await([&] { return TextOf("state") == QStringLiteral("LIVE"); });
}

TEST_F(ViewerTest, NeverShowsAnOldImageAsLive) {
  OpenRun({.run = run_});
  Await([&] { return TextOf("state") == QStringLiteral("LIVE"); });
  publisher_->Stop();
  AwaitStatus("stale");
  Await([&] { return TextOf("state").startsWith(QStringLiteral("STALE")); });
  publisher_->Continue();
  Await([&] { return TextOf("state") == QStringLiteral("LIVE"); });
  publisher_->Kill();
  AwaitStatus("reconnecting");
  Await([&] {
    return TextOf("state").startsWith(QStringLiteral("RECONNECTING"));
  });
  EXPECT_TRUE(tab()->hasImage());
  publisher_ = nullptr;
  AwaitStatus("fastlane-unavailable");
  publisher_ = std::make_unique<Publisher>(PatternRun{.run = run_});
  AwaitStatus("connected");
  Await([&] { return TextOf("state") == QStringLiteral("LIVE"); });
}

TEST_F(ViewerTest, SendsTheSeedsSignals) {
  Publisher publisher({.run = run_});
  FastLaneConsumer consumer(QString::fromStdString(run_));
  QSignalSpy statuses(&consumer, &FastLaneConsumer::status_changed);
  QString hud;
  QImage image;
  QObject::connect(&consumer, &FastLaneConsumer::frame_ready,
                   [&](const FastLaneFrameEvent& event) {
                     hud = event.hud_text;
                     image = event.image;
                   });
  consumer.start();
  Await([&] { return consumer.status() == QStringLiteral("connected"); });
  EXPECT_EQ(image.format(), QImage::Format_RGB888);
  EXPECT_TRUE(hud.startsWith(QStringLiteral("reward: ")));
  EXPECT_EQ(hud.split(QLatin1Char('\n')).size(), 3);
  EXPECT_EQ(statuses.last()[0].toString(), QStringLiteral("connected"));
  consumer.stop();
}

TEST_F(ViewerTest, ShowsHostileNamesAsText) {
  // A mark that reverses the text, an escape of a terminal, and HTML.
  const PatternRun run = {.run = run_ + "\u202Egpj\x1b[2J<b>"};
  const QString shown = QString::fromStdString(run_) +
                        QStringLiteral("\\xe2\\x80\\xaegpj\\x1b[2J<b>");
  publisher_ = std::make_unique<Publisher>(run);
  Open({});
  Await([&] {
    return std::ranges::any_of(viewer_->runs(), [&](const QVariant& row) {
      return row.toMap()[QStringLiteral("name")] == shown;
    });
  });
  viewer_->open(QString::fromStdString(run.run));
  AwaitStatus(QStringLiteral("connected"));
  EXPECT_TRUE(window()->title().startsWith(shown));
  Await([&] { return TextOf("runName") == shown; });
}

TEST_F(ViewerTest, PutsTheHudOnTheImage) {
  OpenRun({.run = run_});
  Await([&] { return TextOf("hud") == tab()->hudText(); });
  EXPECT_TRUE(TextOf("hud").contains(QStringLiteral("\nstep/sec: ")));
}

TEST_F(ViewerTest, ReportsFailedRender) {
  PatternRun run = {.run = run_};
  run.error_text = "no EGL <b>here</b>";
  OpenRun(run);
  Await([&] {
    return TextOf("error").endsWith(QStringLiteral(": no EGL <b>here</b>"));
  });
}

class EvaluationTest : public ViewerTest {
 protected:
  // Waits until the kernel reports that a reader closed the file.
  void AwaitRead(const std::string& path) {
    const UniqueFd events(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    ASSERT_GE(inotify_add_watch(events.get(), path.c_str(), IN_CLOSE_NOWRITE),
              0);
    Await([&] {
      inotify_event event;
      return read(events.get(), &event, sizeof(event)) == sizeof(event);
    });
  }
};

TEST_F(EvaluationTest, ReadsTheFilePeriodically) {
  const QTemporaryDir folder;
  ViewerOptions options;
  const std::string summary =
      folder.filePath(QStringLiteral("eval_summary.json")).toStdString();
  options.run_modes = {"policy_eval"};
  options.eval_summaries = {summary};
  OpenRun({.run = run_}, options);
  EXPECT_TRUE(TextOf("evaluation").startsWith(QStringLiteral("no evaluation")));
  std::ofstream(summary)
      << R"({"batch_index": 2, "episodes": 20, "avg_return": 1.5})";
  Await([&] {
    return TextOf("evaluation") == QStringLiteral(
                                       "evaluation batch 2, 20 episodes\n"
                                       "return: avg 1.50, min 0.00, max 0.00");
  });
  std::ofstream(summary) << R"({"batch_index": 3, "epis)";
  AwaitRead(summary);
  EXPECT_TRUE(TextOf("evaluation").contains(QStringLiteral("batch 2")));
  std::ofstream(summary) << R"({"batch_index": 3})";
  Await(
      [&] { return TextOf("evaluation").contains(QStringLiteral("batch 3")); });
}

TEST_F(ViewerTest, SavesTheImageAsPublished) {
  const QTemporaryDir folder;
  ViewerOptions options;
  options.snapshots = folder.path().toStdString();
  const PatternRun run = Slow(37, 23, 4);
  OpenRun(run, options);
  Press(Qt::Key_Space);
  Press(Qt::Key_S);
  const QStringList files = QDir(folder.path()).entryList(QDir::Files);
  ASSERT_EQ(files.size(), 1);
  const QImage saved(folder.filePath(files[0]));
  EXPECT_EQ(saved.text(QStringLiteral("State")), QStringLiteral("paused"));
  const uint64_t step = saved.text(QStringLiteral("Step")).toULongLong();
  for (uint32_t y = 0; y < 23; ++y) {
    for (uint32_t x = 0; x < 37; ++x) {
      ASSERT_EQ(saved.pixel(static_cast<int>(x), static_cast<int>(y)),
                qRgba(PatternAt(step, x, y, 0), PatternAt(step, x, y, 1),
                      PatternAt(step, x, y, 2), PatternAt(step, x, y, 3)));
    }
  }
  Press(Qt::Key_S, Qt::ShiftModifier);
  EXPECT_EQ(QDir(folder.path()).entryList(QDir::Files).size(), 2);
  EXPECT_TRUE(viewer_->message().startsWith(QStringLiteral("Saved ")));
}

TEST_F(ViewerTest, ReportsFailedSnapshot) {
  ViewerOptions options;
  options.snapshots = "/nowhere";
  OpenRun({.run = run_}, options);
  Press(Qt::Key_S);
  EXPECT_TRUE(viewer_->message().startsWith(QStringLiteral("Could not")));
}

TEST_F(ViewerTest, EndsASnapshotWhoseLastTabWasClosed) {
  const QTemporaryDir folder;
  ViewerOptions options;
  options.runs = {run_};
  options.snapshot = folder.filePath(QStringLiteral("out.png")).toStdString();
  Open(options);
  const SnapshotJob job(options, viewer_.get());
  // A timer inside the loop: the loop must begin before the key ends it.
  QTimer::singleShot(0, [&] { Press(Qt::Key_W, Qt::ControlModifier); });
  EXPECT_EQ(QGuiApplication::exec(), 1);
  EXPECT_FALSE(QFile::exists(QString::fromStdString(options.snapshot)));
}

}  // namespace
}  // namespace tandem
