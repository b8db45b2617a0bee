// VirtualDisplay: an X server of a test's own, and what its screen shows.
//
// Data flow: Xvfb, which picks a free display number -> DISPLAY -> the test's
// windows; Xvfb's own screen memory, mapped -> Grab.
// Ownership: a test's main, before its application.
//
//   VirtualDisplay display(1280, 1024);
//   QImage screen = display.Grab();

#ifndef TANDEM_VIZ_TESTING_VIRTUAL_DISPLAY_H_
#define TANDEM_VIZ_TESTING_VIRTUAL_DISPLAY_H_

#include <QImage>
#include <string>

namespace tandem {

class VirtualDisplay {
 public:
  // Starts the server, waits until it serves, sets DISPLAY. Ends the process
  // with a word on what is missing if that fails.
  VirtualDisplay(int width, int height);
  VirtualDisplay(const VirtualDisplay&) = delete;
  VirtualDisplay& operator=(const VirtualDisplay&) = delete;
  ~VirtualDisplay();

  // The screen as it is now.
  QImage Grab() const;

 private:
  std::string folder_;
  int pid_ = -1;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_TESTING_VIRTUAL_DISPLAY_H_
