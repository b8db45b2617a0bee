// The effect of keys and the mouse on the window and its tabs.
#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QKeySequence>
#include <QPoint>
#include <QPointF>
#include <QQuickItem>
#include <QRectF>
#include <QSignalSpy>
#include <QString>
#include <QTemporaryDir>
#include <QTest>
#include <QWheelEvent>
#include <QWindow>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/core/image_view.h"
#include "viz/core/key_map.h"
#include "viz/core/viewer_options.h"
#include "viz/testing/pattern.h"
#include "viz/viewer/testing/viewer_fixture.h"
#include "viz/viewer/viewer.h"

namespace tandem {
namespace {

class KeysTest : public ViewerTest {
 protected:
  // Selects the run on the start page by the arrow keys.
  void ChooseRun(const std::string& run) {
    const auto run_at = [&](qsizetype row) {
      return viewer_->runs()[row].toMap()[QStringLiteral("run")].toString();
    };
    Await([&] {
      for (qsizetype i = 0; i < viewer_->runs().size(); ++i) {
        if (run_at(i).toStdString() == run) return true;
      }
      return false;
    });
    for (qsizetype i = 0; i < viewer_->runs().size(); ++i) Press(Qt::Key_Up);
    while (run_at(viewer_->chosenRun()).toStdString() != run) {
      Press(Qt::Key_Down);
    }
  }

  // Sets up a state in which the action has an effect, lets `press` press its
  // key, and checks the effect.
  void ExpectDone(Action action, const std::function<void()>& press);

  const QTemporaryDir folder_;
};

void KeysTest::ExpectDone(Action action, const std::function<void()>& press) {
  ImageView& view = tab()->view();
  const auto toggles = [&](const std::function<bool()>& state) {
    const bool before = state();
    press();
    EXPECT_NE(state(), before);
    press();
    EXPECT_EQ(state(), before);
  };
  const auto saves = [&](const QString& pattern) {
    const auto files = [&] {
      return QDir(folder_.path()).entryList({pattern}).size();
    };
    const qsizetype before = files();
    press();
    EXPECT_EQ(files(), before + 1);
  };
  switch (action) {
    case Action::kPause:
      return toggles([&] { return tab()->paused(); });
    case Action::kHud:
      return toggles([&] { return tab()->hudShown(); });
    case Action::kEngine:
      return toggles([&] { return tab()->engineShown(); });
    case Action::kSlowLane:
      return toggles([&] { return viewer_->slowLane(); });
    case Action::kPage:  // see viewer_actions_test
      return;
    case Action::kImageOnly:
      return toggles([&] { return viewer_->imageOnly(); });
    case Action::kTheme:
      return toggles([&] { return viewer_->dark(); });
    case Action::kHelp:
      return toggles([&] { return viewer_->helpShown(); });
    case Action::kFullScreen:
      return toggles(
          [&] { return window()->visibility() == QWindow::FullScreen; });
    case Action::kGrid:
      view.Focus(1);
      viewer_->Perform(Action::kHelp);
      press();  // It first closes the help.
      EXPECT_FALSE(viewer_->helpShown());
      EXPECT_EQ(view.focus(), 1);
      press();
      EXPECT_EQ(view.focus(), ImageView::kGrid);
      return;
    case Action::kNextTile:
      view.Focus(1);
      press();
      EXPECT_EQ(view.focus(), 2);
      return view.Focus(ImageView::kGrid);
    case Action::kPreviousTile:
      view.Focus(1);
      press();
      EXPECT_EQ(view.focus(), 0);
      return view.Focus(ImageView::kGrid);
    case Action::kSnapshot:
      return saves(QString::fromStdString(run_) + QStringLiteral("-*.png"));
    case Action::kWindowSnapshot:
      return saves(QStringLiteral("viewer-*.png"));
    case Action::kStartPage:
      press();
      EXPECT_EQ(viewer_->current(), Viewer::kStartPage);
      return;
    case Action::kOpen:
      viewer_->SetCurrent(Viewer::kStartPage);
      ChooseRun(run_);
      press();
      EXPECT_EQ(viewer_->current(), 0);
      return;
    case Action::kPreviousRun:  // see ListsRunsAndOpensOneByKeyOrClick
    case Action::kNextRun:
      return;
    case Action::kNextTab:
      press();
      EXPECT_EQ(viewer_->current(), 1);
      return;
    case Action::kPreviousTab:
      viewer_->SetCurrent(1);
      press();
      EXPECT_EQ(viewer_->current(), 0);
      return;
    case Action::kCloseTab:
      viewer_->SetCurrent(1);
      press();
      EXPECT_EQ(viewer_->tabs().size(), 1);
      return viewer_->open(QStringLiteral("no-such-run"));
    case Action::kQuit: {
      QSignalSpy quit(viewer_.get(), &Viewer::quitWanted);
      press();
      EXPECT_EQ(quit.count(), 1);
      return;
    }
  }
}

TEST_F(KeysTest, HaveTheEffectsOfTheTable) {
  PatternRun run = {.run = run_};
  run.tiles = 4;
  ViewerOptions options;
  options.snapshots = folder_.path().toStdString();
  OpenRun(run, options);
  Await([&] { return tab()->view().tiles() == 4; });
  viewer_->open(QStringLiteral("no-such-run"));
  for (const KeyRow& row : KeyTable()) {
    for (const absl::string_view name : absl::StrSplit(row.keys, ' ')) {
      SCOPED_TRACE(name);
      const QKeyCombination key = QKeySequence::fromString(
          QString::fromStdString(std::string(name)))[0];
      viewer_->SetCurrent(0);
      ExpectDone(row.action,
                 [&] { Press(key.key(), key.keyboardModifiers()); });
    }
  }
}

TEST_F(ViewerTest, ShowsOneTileByClickAndByKey) {
  PatternRun run = Slow(64, 48, 3);
  run.tiles = 4;
  OpenRun(run, Bare());
  QTest::mouseClick(window(), Qt::LeftButton, {}, PointOf(0.75, 0.25));
  EXPECT_EQ(tab()->view().focus(), 1);
  AwaitPattern(run, {32, 0, 32, 24});
  Press(Qt::Key_BracketRight);
  EXPECT_EQ(tab()->view().focus(), 2);
  AwaitPattern(run, {0, 24, 32, 24});
  QTest::mouseClick(window(), Qt::LeftButton, {}, PointOf(0.5, 0.5));
  EXPECT_EQ(tab()->view().focus(), ImageView::kGrid);
  Press(Qt::Key_BracketLeft);
  EXPECT_EQ(tab()->view().focus(), 3);
  Press(Qt::Key_G);
  EXPECT_EQ(tab()->view().focus(), ImageView::kGrid);
  AwaitPattern(run);
}

TEST_F(KeysTest, ListsRunsAndOpensOneByKeyOrClick) {
  Publisher other({.kind = PatternRun::Kind::kRegion, .run = run_});
  Open({});
  EXPECT_EQ(viewer_->current(), Viewer::kStartPage);
  ChooseRun(run_);
  Press(Qt::Key_Return);
  ASSERT_EQ(viewer_->run_tabs().size(), 1);
  AwaitStatus("connected");
}

// In a window too low for the list, over several scans.
TEST_F(KeysTest, KeepTheSelectedRunVisible) {
  std::vector<std::unique_ptr<Publisher>> publishers;
  for (const char* name : {"", ".1", ".2", ".3", ".4", ".5"}) {
    publishers.push_back(
        std::make_unique<Publisher>(PatternRun{.run = run_ + name}));
  }
  ViewerOptions options;
  options.width = 600;
  options.height = 400;
  Open(options);
  const auto is_in_sight = [&](const std::string& run) {
    const QQuickItem* card = Item(QString::fromStdString(run));
    return card != nullptr &&
           QRectF(QPointF(), QSizeF(window()->size()))
               .contains(card->mapRectToScene(card->boundingRect()));
  };
  QSignalSpy scans(viewer_.get(), &Viewer::runsChanged);
  const std::string last = run_ + ".5";
  for (const std::string& run : {run_, last}) {
    ChooseRun(run);
    Await([&] { return is_in_sight(run); });
    const qsizetype scan = scans.count();
    Await([&] { return scans.count() >= scan + 2; });
    Await([&] { return is_in_sight(run); });
  }
  window()->resize(600, 300);
  Await([&] { return window()->height() == 300; });
  Await([&] { return is_in_sight(last); });
  // Until the user scrolls. The window shows at most two cards, so the last one
  // stays below it also if a run of another test ends meanwhile.
  const auto is_below = [&](double by) {
    const QQuickItem* card = Item(QString::fromStdString(last));
    return card == nullptr ||
           card->mapToScene(QPointF()).y() > window()->height() + by;
  };
  const QPoint middle(300, 200);
  Await([&] {
    QWheelEvent wheel(middle, window()->mapToGlobal(middle), {}, {0, 240},
                      Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(window(), &wheel);
    return is_below(200);
  });
  window()->resize(600, 320);
  const qsizetype scan = scans.count();
  Await([&] { return scans.count() >= scan + 2; });
  EXPECT_TRUE(is_below(0));
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
  // A hidden tab also updates its state.
  publisher.Stop();
  RunTab* hidden = viewer_->run_tabs()[1];
  Await([&] { return hidden->status() == QStringLiteral("stale"); });
  Press(Qt::Key_PageUp);
  EXPECT_EQ(viewer_->current(), 1);
  Press(Qt::Key_W, Qt::ControlModifier);
  EXPECT_EQ(viewer_->run_tabs().size(), 1);
  EXPECT_EQ(viewer_->current(), 0);
  Press(Qt::Key_W, Qt::ControlModifier);
  EXPECT_EQ(viewer_->current(), Viewer::kStartPage);
  QCoreApplication::processEvents();
}

TEST_F(ViewerTest, HasNoShortcutsIfDisabled) {
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
  EXPECT_FALSE(viewer_->imageOnly());
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
