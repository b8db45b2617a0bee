// Scene: the QML of the window, loaded and bound to a Viewer.
//
// Ownership: main or a test makes it after the application and the Viewer.

#pragma once

#include <QQmlApplicationEngine>
#include <QQuickWindow>

#include "viz/viewer/viewer.h"

namespace tandem {

// Makes the QML files and their types known. A second call has no effect.
void RegisterQml();

class Scene {
 public:
  // Opens the window. The QML is part of the program, so a load failure is a
  // bug, and ends the process.
  explicit Scene(Viewer* viewer);

  QQuickWindow* window() const { return window_; }

 private:
  QQmlApplicationEngine engine_;
  QQuickWindow* window_ = nullptr;
};

}  // namespace tandem
