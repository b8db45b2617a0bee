// VirtualDisplay: an X server for one test, and the content of its screen.
//
// Data flow: Xvfb, which picks a free display number -> DISPLAY -> the test's
// windows; Xvfb's own screen memory, mapped -> Grab.
// Ownership: a test's main, before its application.
//
//   VirtualDisplay display(1280, 1024);
//   QImage screen = display.Grab();

#pragma once

#include <QImage>
#include <string>

namespace tandem {

class VirtualDisplay {
 public:
  // Starts the server, waits until it serves, and sets DISPLAY. On failure
  // prints the missing program and ends the process.
  VirtualDisplay(int width, int height);
  VirtualDisplay(const VirtualDisplay&) = delete;
  VirtualDisplay& operator=(const VirtualDisplay&) = delete;
  ~VirtualDisplay();

  // The screen's present content.
  QImage Grab() const;

 private:
  std::string folder_;
  int pid_ = -1;
};

}  // namespace tandem
