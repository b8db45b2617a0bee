// ViewerTest: the real window on an X server, for tests of what it shows and
// does.
//
// Data flow: a publisher's process -> the viewer's window -> the X server's
// screen, read back; the test's keys and clicks -> the window.
// Ownership: each test has its own; the display and the application belong to
// main, which comes with it.
//
//   TEST_F(ViewerTest, Pauses) {
//     OpenRun({.run = run_});
//     Press(Qt::Key_Space);
//     EXPECT_TRUE(tab()->paused());
//   }

#ifndef TANDEM_VIZ_VIEWER_TESTING_VIEWER_FIXTURE_H_
#define TANDEM_VIZ_VIEWER_TESTING_VIEWER_FIXTURE_H_

#include <gtest/gtest.h>

#include <QImage>
#include <QPoint>
#include <QQuickItem>
#include <QQuickWindow>
#include <QString>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/memory/testing/unique_region_name.h"
#include "viz/core/image_view.h"
#include "viz/core/viewer_options.h"
#include "viz/testing/pattern.h"
#include "viz/viewer/fast_lane_tab.h"
#include "viz/viewer/scene.h"
#include "viz/viewer/viewer.h"

namespace tandem {

class ViewerTest : public testing::Test {
 protected:
  // A small window, nothing around the image.
  static ViewerOptions Bare();
  // Slow enough for a screen to be read between two frames, quick enough to be
  // live.
  PatternRun Slow(uint32_t width, uint32_t height, uint32_t channels) const;

  void Open(const ViewerOptions& options);
  // With a publisher, and its first new frame on show.
  void OpenRun(const PatternRun& run, ViewerOptions options = {});
  // Qt and QML must have complained of nothing.
  void TearDown() override;

  // Handles events until then; a watchdog ends the test.
  void Await(const std::function<bool()>& done);
  void AwaitStatus(const QString& status);

  // Grabs the screen until it shows a whole pattern (one frame may be on its
  // way to the screen while it is read); returns its step.
  int AwaitPattern(const PatternRun& run, ViewRect source = {});
  // What the X server's screen shows now.
  static QImage GrabScreen();

  QQuickWindow* window() const { return scene_->window(); }
  FastLaneTab* tab() const {
    return viewer_->fast_lane_tabs()[viewer_->current()];
  }
  void Press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier);
  // A visible item of the scene; nullptr: there is none.
  const QQuickItem* Item(const QString& name) const;
  QString TextOf(const char* name) const;
  // In the middle of a part of the image, both from 0 to 1.
  QPoint PointOf(double x, double y) const;

  const std::string run_ = UniqueRegionName("viewer");
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Viewer> viewer_;
  std::unique_ptr<Scene> scene_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_TESTING_VIEWER_FIXTURE_H_
