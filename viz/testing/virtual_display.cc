#include "viz/testing/virtual_display.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QFile>
#include <QtEndian>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/os/end_with_parent.h"

namespace tandem {
namespace {

// Big-endian words of the header of an XWD file, version 7, by their index.
constexpr int kHeaderBytes = 0;
constexpr int kWidth = 4;
constexpr int kHeight = 5;
constexpr int kBitsPerPixel = 11;
constexpr int kBytesPerLine = 12;
constexpr int kColours = 19;  // Entries of 12 bytes after the header.

}  // namespace

VirtualDisplay::VirtualDisplay(int width, int height) {
  char folder[] = "/tmp/tandem-display-XXXXXX";
  folder_ = mkdtemp(folder);
  int ready[2];
  if (pipe(ready) != 0) std::abort();
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    EndWithParent(SIGKILL, parent);
    close(ready[0]);
    const std::string fd = absl::StrCat(ready[1]);
    const std::string screen = absl::StrCat(width, "x", height, "x24");
    execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0",
           screen.c_str(), "-fbdir", folder_.c_str(), "-nolisten", "tcp",
           nullptr);
    std::perror("Xvfb expected (tools/setup installs it), not found");
    _exit(1);
  }
  close(ready[1]);
  // The number ends with a line feed once the server accepts clients.
  std::string number;
  for (char c; read(ready[0], &c, 1) == 1 && c != '\n';) number += c;
  close(ready[0]);
  if (number.empty()) {
    std::fputs("Xvfb did not start\n", stderr);
    std::exit(1);
  }
  setenv("DISPLAY", absl::StrCat(":", number).c_str(), 1);
}

VirtualDisplay::~VirtualDisplay() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

QImage VirtualDisplay::Grab() const {
  QFile file(QString::fromStdString(folder_ + "/Xvfb_screen0"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const uchar* bytes = file.map(0, file.size());
  const auto word = [&](int index) {
    return static_cast<int>(qFromBigEndian<quint32>(bytes + 4 * index));
  };
  if (bytes == nullptr || word(kBitsPerPixel) != 32) return {};
  return QImage(bytes + word(kHeaderBytes) + 12 * word(kColours), word(kWidth),
                word(kHeight), word(kBytesPerLine), QImage::Format_RGB32)
      .copy();
}

}  // namespace tandem
