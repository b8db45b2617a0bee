// ViewerTest: the real window on an X server, for tests of its display and
// behaviour.
//
// Data flow: a publisher's process -> the viewer's window -> the X server's
// screen, read back; the test's keys and clicks -> the window.
// Ownership: each test has its own; main, which this library contains, owns the
// display and the application.
//
//   TEST_F(ViewerTest, Pauses) {
//     OpenRun({.run = run_});
//     Press(Qt::Key_Space);
//     EXPECT_TRUE(tab()->paused());
//   }

#pragma once

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
#include "viz/viewer/run_tab.h"
#include "viz/viewer/scene.h"
#include "viz/viewer/viewer.h"

namespace tandem {

class ViewerTest : public testing::Test {
 protected:
  // A small window, with no controls around the image.
  static ViewerOptions Bare();
  // Slow enough to read a screen between two frames, fast enough to be live.
  PatternRun Slow(uint32_t width, uint32_t height, uint32_t channels) const;

  void Open(const ViewerOptions& options);
  // Opens with a publisher; returns once a new frame is shown.
  void OpenRun(const PatternRun& run, ViewerOptions options = {});
  // Fails the test if Qt or QML issued a warning.
  void TearDown() override;

  // Handles events until `done`; a watchdog ends the test.
  void Await(const std::function<bool()>& done);
  void AwaitStatus(const QString& status);

  // Grabs the screen until it shows a complete pattern (a frame may be in
  // transit to the screen while the test reads it). Returns its step.
  int AwaitPattern(const PatternRun& run, ViewRect source = {});
  // The X server's present screen content.
  static QImage GrabScreen();

  QQuickWindow* window() const { return scene_->window(); }
  RunTab* tab() const { return viewer_->run_tabs()[viewer_->current()]; }
  void Press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier);
  // A visible item of the scene; nullptr if there is none.
  const QQuickItem* Item(const QString& name) const;
  QString TextOf(const char* name) const;
  // A position in the image; `x` and `y` range from 0 to 1.
  QPoint PointOf(double x, double y) const;

  const std::string run_ = UniqueRegionName("viewer");
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Viewer> viewer_;
  std::unique_ptr<Scene> scene_;
};

}  // namespace tandem
