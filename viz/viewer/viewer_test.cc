// The real window on an X server: its pixels read from the screen itself, its
// keys and clicks, its states. By OpenGL; as viewer_software_test, by Qt's own
// renderer.
#include "viz/viewer/viewer.h"

#include <gtest/gtest.h>

#include <QGuiApplication>
#include <QImage>
#include <QQuickItem>
#include <QQuickWindow>
#include <QSignalSpy>
#include <QStringList>
#include <QTemporaryDir>
#include <QTest>
#include <array>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "transport/base/clock.h"
#include "transport/memory/unique_region_name.h"
#include "viz/core/viewer_options.h"
#include "viz/testing/pattern.h"
#include "viz/testing/pattern_check.h"
#include "viz/testing/virtual_display.h"
#include "viz/viewer/scene.h"

namespace tandem {
namespace {

constexpr int64_t kWatchdogNs = 60'000'000'000;

const VirtualDisplay* display = nullptr;

// What Qt and QML complain of; empty after each test.
QStringList complaints;
void Complain(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type == QtDebugMsg || type == QtInfoMsg) return;
  if (text.contains(QStringLiteral("XDG_RUNTIME_DIR"))) return;
  complaints << text;
}

// In the visual tree, where a repeater's items are nobody's QObject children.
const QQuickItem* FindItem(const QQuickItem* root, const QString& name) {
  if (root->objectName() == name && root->isVisible()) return root;
  for (const QQuickItem* child : root->childItems()) {
    if (const QQuickItem* found = FindItem(child, name)) return found;
  }
  return nullptr;
}

class ViewerTest : public testing::Test {
 protected:
  void Open(const ViewerOptions& options) {
    viewer_ = std::make_unique<Viewer>(options);
    scene_ = std::make_unique<Scene>(viewer_.get());
    window()->setPosition(0, 0);
    Await([&] { return window()->isExposed(); });
  }
  // With a publisher, and its first new frame on show.
  void OpenRun(const PatternRun& run, ViewerOptions options = {}) {
    publisher_ = std::make_unique<Publisher>(run);
    options.runs = {run.run};
    Open(options);
    AwaitStatus("connected");
  }

  void TearDown() override {
    scene_ = nullptr;
    viewer_ = nullptr;
    EXPECT_TRUE(complaints.isEmpty())
        << complaints.join(QLatin1Char('\n')).toStdString();
    complaints.clear();
  }

  void Await(const std::function<bool()>& done) {
    const int64_t begin_ns = MonotonicNanos();
    while (!done()) {
      ASSERT_LT(MonotonicNanos() - begin_ns, kWatchdogNs);
      QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
    }
  }
  void AwaitStatus(const QString& status) {
    Await([&] { return tab()->status() == status; });
  }

  // Grabs the screen until it shows a whole pattern (one frame may be on its
  // way to the screen while it is read); returns its step.
  int AwaitPattern(const PatternRun& run, ViewRect source = {}) {
    if (source.width == 0) {
      source = {0, 0, static_cast<double>(run.geometry.width),
                static_cast<double>(run.geometry.height)};
    }
    PatternSeen seen;
    const int64_t begin_ns = MonotonicNanos();
    do {
      QTest::qWait(20);
      const QRect area(window()->position(), window()->size());
      seen = CheckPattern(display->Grab(), area, run.geometry, source);
    } while (!seen.wrong.empty() &&
             MonotonicNanos() - begin_ns < kWatchdogNs / 4);
    EXPECT_EQ(seen.wrong, "");
    EXPECT_GT(seen.checked, 1000);
    return seen.step;
  }

  QQuickWindow* window() const { return scene_->window(); }
  FastLaneTab* tab() const {
    return viewer_->fast_lane_tabs()[viewer_->current()];
  }
  void Press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(window(), key, modifiers);
  }
  QString TextOf(const char* name) const {
    const QQuickItem* item =
        FindItem(window()->contentItem(), QString::fromLatin1(name));
    return item == nullptr ? QStringLiteral("no such item")
                           : item->property("text").toString();
  }
  // In the middle of a part of the picture, both from 0 to 1.
  QPoint PointOf(double x, double y) const {
    const QQuickItem* item =
        FindItem(window()->contentItem(), QStringLiteral("picture"));
    const ViewRect target = tab()->view().Target();
    return item
        ->mapToScene(
            QPointF(target.x + x * target.width, target.y + y * target.height))
        .toPoint();
  }

  const std::string run_ = UniqueRegionName("viewer");
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Viewer> viewer_;
  std::unique_ptr<Scene> scene_;
};

ViewerOptions Bare() {
  ViewerOptions options;
  options.picture_only = true;
  options.width = 640;
  options.height = 480;
  return options;
}

// Slow enough for a screen to be read between two frames, quick enough to be
// live.
PatternRun Slow(const std::string& run, uint32_t width, uint32_t height,
                uint32_t channels) {
  PatternRun pattern = {.run = run, .hz = 8};
  pattern.geometry.width = width;
  pattern.geometry.height = height;
  pattern.geometry.channels = channels;
  return pattern;
}

TEST_F(ViewerTest, ShowsTheRightPixelsCornerToCorner) {
  PatternRun run = Slow(run_, 64, 48, 3);
  OpenRun(run, Bare());
  std::set<int> steps;  // it moves
  Await([&] {
    steps.insert(AwaitPattern(run));
    return steps.size() >= 3 || HasFailure();
  });
}

TEST_F(ViewerTest, ShowsOddSizesAndRgbaThroughRestarts) {
  PatternRun run = Slow(run_, 37, 23, 4);
  OpenRun(run, Bare());
  AwaitPattern(run);
  for (const std::array<uint32_t, 3>& size :
       {std::array<uint32_t, 3>{101, 3, 3},
        {3, 91, 4},
        {1, 1, 3},
        {199, 149, 4}}) {
    publisher_ = nullptr;
    run = Slow(run_, size[0], size[1], size[2]);
    publisher_ = std::make_unique<Publisher>(run);
    Await([&] {
      return tab()->image().width() == static_cast<int>(size[0]) &&
             tab()->live();
    });
    AwaitPattern(run);
  }
}

TEST_F(ViewerTest, ShowsTheRightPixelsAfterAResizeOfTheWindow) {
  const PatternRun run = Slow(run_, 64, 48, 3);
  OpenRun(run, Bare());
  for (const QSize& size :
       {QSize(501, 333), QSize(333, 501), QSize(800, 600)}) {
    window()->resize(size);
    Await([&] { return window()->size() == size; });
    AwaitPattern(run);
  }
}

TEST_F(ViewerTest, ShowsOneTileByClickAndByKey) {
  PatternRun run = Slow(run_, 64, 48, 3);
  run.tiles = 4;
  OpenRun(run, Bare());
  QTest::mouseClick(window(), Qt::LeftButton, {}, PointOf(0.75, 0.25));
  EXPECT_EQ(tab()->view().focus(), 1);
  AwaitPattern(run, {32, 0, 32, 24});
  Press(Qt::Key_BracketRight);
  EXPECT_EQ(tab()->view().focus(), 2);
  AwaitPattern(run, {0, 24, 32, 24});
  QTest::mouseClick(window(), Qt::LeftButton, {}, PointOf(0.5, 0.5));
  EXPECT_EQ(tab()->view().focus(), PictureView::kGrid);
  Press(Qt::Key_BracketLeft);
  EXPECT_EQ(tab()->view().focus(), 3);
  Press(Qt::Key_G);
  EXPECT_EQ(tab()->view().focus(), PictureView::kGrid);
  AwaitPattern(run);
}

TEST_F(ViewerTest, ZoomsAndPansByMouseAndKeys) {
  OpenRun(Slow(run_, 64, 48, 3));
  EXPECT_TRUE(tab()->view().fitted());
  const double fitted = tab()->view().scale();
  Press(Qt::Key_Plus);
  EXPECT_GT(tab()->view().scale(), fitted);
  const ViewRect before = tab()->view().Target();
  QTest::mousePress(window(), Qt::LeftButton, {}, PointOf(0.5, 0.5));
  QTest::mouseMove(window(), PointOf(0.5, 0.5) + QPoint(30, 10));
  QTest::mouseRelease(window(), Qt::LeftButton, {},
                      PointOf(0.5, 0.5) + QPoint(30, 10));
  EXPECT_GT(tab()->view().Target().x, before.x);
  const double dragged = tab()->view().Target().x;
  Press(Qt::Key_Right);
  EXPECT_LT(tab()->view().Target().x, dragged);
  Press(Qt::Key_1);
  EXPECT_EQ(tab()->view().scale(), 1);
  Press(Qt::Key_F);
  EXPECT_TRUE(tab()->view().fitted());
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
  EXPECT_TRUE(tab()->live());
  EXPECT_NE(tab()->stepText(), step);
  Await([&] { return TextOf("state") == QStringLiteral("LIVE"); });
}

TEST_F(ViewerTest, NeverShowsAnOldPictureAsLive) {
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
  EXPECT_TRUE(tab()->hasPicture());
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

TEST_F(ViewerTest, PutsTheHudOnThePicture) {
  OpenRun({.run = run_});
  Await([&] { return TextOf("hud") == tab()->hudText(); });
  EXPECT_TRUE(TextOf("hud").contains(QStringLiteral("\nstep/sec: ")));
}

TEST_F(ViewerTest, SaysThatDrawingFailed) {
  PatternRun run = {.run = run_};
  run.error_text = "no EGL <b>here</b>";
  OpenRun(run);
  Await([&] {
    return TextOf("error").endsWith(QStringLiteral(": no EGL <b>here</b>"));
  });
}

TEST_F(ViewerTest, ReadsTheEvaluationAgainAndAgain) {
  const QTemporaryDir folder;
  ViewerOptions options;
  options.policy_eval = true;
  options.eval_summary =
      folder.filePath(QStringLiteral("eval_summary.json")).toStdString();
  OpenRun({.run = run_}, options);
  EXPECT_TRUE(TextOf("evaluation").startsWith(QStringLiteral("no evaluation")));
  std::ofstream(options.eval_summary)
      << R"({"batch_index": 2, "episodes": 20, "avg_return": 1.5})";
  Await([&] {
    return TextOf("evaluation") == QStringLiteral(
                                       "evaluation batch 2, 20 episodes\n"
                                       "return: avg 1.50, min 0.00, max 0.00");
  });
  std::ofstream(options.eval_summary) << R"({"batch_index": 3, "epis)";
  QTest::qWait(1200);  // read once more at least, half written as it is
  EXPECT_TRUE(TextOf("evaluation").contains(QStringLiteral("batch 2")));
  std::ofstream(options.eval_summary) << R"({"batch_index": 3})";
  Await(
      [&] { return TextOf("evaluation").contains(QStringLiteral("batch 3")); });
}

TEST_F(ViewerTest, SavesThePictureAsPublished) {
  const QTemporaryDir folder;
  ViewerOptions options;
  options.snapshots = folder.path().toStdString();
  const PatternRun run = Slow(run_, 37, 23, 4);
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

TEST_F(ViewerTest, SaysThatASnapshotCouldNotBeSaved) {
  ViewerOptions options;
  options.snapshots = "/nowhere";
  OpenRun({.run = run_}, options);
  Press(Qt::Key_S);
  EXPECT_TRUE(viewer_->message().startsWith(QStringLiteral("Could not")));
}

TEST_F(ViewerTest, ListsRunsAndOpensOneByKeyOrClick) {
  Publisher other({.kind = PatternRun::Kind::kRegion, .run = run_});
  Open({});
  EXPECT_EQ(viewer_->current(), Viewer::kStartPage);
  const auto chosen = [&] {
    return viewer_->runs()[viewer_->chosenRun()]
        .toMap()[QStringLiteral("run")]
        .toString()
        .toStdString();
  };
  const auto there = [&] {
    for (const QVariant& row : viewer_->runs()) {
      if (row.toMap()[QStringLiteral("run")].toString().toStdString() == run_) {
        return true;
      }
    }
    return false;
  };
  Await(there);
  for (qsizetype i = 0; i < viewer_->runs().size(); ++i) Press(Qt::Key_Up);
  while (chosen() != run_) Press(Qt::Key_Down);
  Press(Qt::Key_Return);
  ASSERT_EQ(viewer_->fast_lane_tabs().size(), 1);
  AwaitStatus("connected");
}

TEST_F(ViewerTest, KeepsTabsForSeveralRuns) {
  const std::string second = UniqueRegionName("viewer");
  Publisher publisher({.run = second});
  ViewerOptions options;
  options.runs = {run_, second};
  Open(options);
  EXPECT_EQ(viewer_->current(), 0);
  AwaitStatus("fastlane-unavailable");
  Press(Qt::Key_Tab, Qt::ControlModifier);
  EXPECT_EQ(viewer_->current(), 1);
  AwaitStatus("connected");
  Press(Qt::Key_Home);
  EXPECT_EQ(viewer_->current(), Viewer::kStartPage);
  // A hidden tab knows its state, too.
  publisher.Stop();
  FastLaneTab* hidden = viewer_->fast_lane_tabs()[1];
  Await([&] { return hidden->status() == QStringLiteral("stale"); });
  Press(Qt::Key_PageUp);
  EXPECT_EQ(viewer_->current(), 1);
  Press(Qt::Key_W, Qt::ControlModifier);
  EXPECT_EQ(viewer_->fast_lane_tabs().size(), 1);
  EXPECT_EQ(viewer_->current(), 0);
  Press(Qt::Key_W, Qt::ControlModifier);
  EXPECT_EQ(viewer_->current(), Viewer::kStartPage);
  QCoreApplication::processEvents();
}

TEST_F(ViewerTest, AnswersEveryKeyOfTheTable) {
  OpenRun({.run = run_});
  QSignalSpy quit(viewer_.get(), &Viewer::quitWanted);
  Press(Qt::Key_Question, Qt::ShiftModifier);
  EXPECT_TRUE(viewer_->helpShown());
  Press(Qt::Key_Escape);
  EXPECT_FALSE(viewer_->helpShown());
  Press(Qt::Key_F1);
  EXPECT_TRUE(viewer_->helpShown());
  Press(Qt::Key_F1);
  const bool dark = viewer_->dark();
  Press(Qt::Key_T);
  EXPECT_NE(viewer_->dark(), dark);
  Press(Qt::Key_B);
  EXPECT_TRUE(viewer_->pictureOnly());
  Press(Qt::Key_B);
  Press(Qt::Key_H);
  EXPECT_FALSE(tab()->hudShown());
  Press(Qt::Key_P);
  EXPECT_FALSE(tab()->plotsShown());
  Press(Qt::Key_Q, Qt::ControlModifier);
  EXPECT_EQ(quit.count(), 1);
}

TEST_F(ViewerTest, HasNoShortcutsIfNoneAreWanted) {
  ViewerOptions options;
  options.shortcuts = false;
  OpenRun({.run = run_}, options);
  QSignalSpy quit(viewer_.get(), &Viewer::quitWanted);
  for (const Qt::Key key : {Qt::Key_Space, Qt::Key_F1, Qt::Key_T, Qt::Key_B}) {
    Press(key);
  }
  Press(Qt::Key_Q, Qt::ControlModifier);
  EXPECT_FALSE(tab()->paused());
  EXPECT_FALSE(viewer_->helpShown());
  EXPECT_TRUE(viewer_->dark());
  EXPECT_FALSE(viewer_->pictureOnly());
  EXPECT_EQ(quit.count(), 0);
}

TEST(KeyName, NamesKeysAsTheTableDoes) {
  EXPECT_EQ(KeyName(Qt::Key_Question, Qt::ShiftModifier), QStringLiteral("?"));
  EXPECT_EQ(KeyName(Qt::Key_Plus, Qt::KeypadModifier), QStringLiteral("+"));
  EXPECT_EQ(KeyName(Qt::Key_S, Qt::ShiftModifier), QStringLiteral("Shift+S"));
  EXPECT_EQ(KeyName(Qt::Key_Tab, Qt::ControlModifier),
            QStringLiteral("Ctrl+Tab"));
  EXPECT_EQ(KeyName(Qt::Key_Backtab, Qt::ControlModifier | Qt::ShiftModifier),
            QStringLiteral("Ctrl+Shift+Backtab"));
  EXPECT_EQ(KeyName(Qt::Key_Space, Qt::NoModifier), QStringLiteral("Space"));
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const tandem::VirtualDisplay virtual_display(1400, 1000);
  tandem::display = &virtual_display;
  qputenv("QT_QPA_PLATFORM", "xcb");
  QGuiApplication app(argc, argv);
  qInstallMessageHandler(tandem::Complain);
  return RUN_ALL_TESTS();
}
