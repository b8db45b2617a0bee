// FastLaneTab in a program that knows its header only.
#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QImage>
#include <QProcess>
#include <QSet>
#include <QTemporaryDir>
#include <string>

#include "transport/memory/testing/unique_region_name.h"
#include "viz/testing/pattern.h"
#include "viz/testing/virtual_display.h"

namespace tandem {
namespace {

constexpr int kWatchdogMs = 60'000;

// The number of different colours: a frame of the pattern has some thousand.
qsizetype ColoursOf(const QImage& image) {
  QSet<QRgb> colours;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) colours.insert(image.pixel(x, y));
  }
  return colours.size();
}

TEST(FastLaneTab, ShowsARunInAnotherProgramsWindow) {
  const QTemporaryDir folder;
  // Qt wants the one; Fontconfig the other, else it reports on stderr.
  qputenv("XDG_RUNTIME_DIR", folder.path().toLocal8Bit());
  qputenv("XDG_CACHE_HOME", folder.path().toLocal8Bit());
  const QString file = folder.filePath(QStringLiteral("window.png"));
  const std::string run = UniqueRegionName("embedded");
  QProcess program;
  program.setProcessChannelMode(QProcess::MergedChannels);
  program.start(QStringLiteral("viz/viewer/embedding_program"),
                {QString::fromStdString(run), file});
  ASSERT_TRUE(program.waitForReadyRead(kWatchdogMs));
  EXPECT_EQ(program.readLine(), "fastlane-unavailable\n");
  const Publisher publisher({.run = run});  // a run may begin later
  ASSERT_TRUE(program.waitForFinished(kWatchdogMs));
  const QByteArray output = program.readAll();
  EXPECT_EQ(program.exitCode(), 0) << output.toStdString();
  EXPECT_TRUE(output.contains("connected\n")) << output.toStdString();
  EXPECT_FALSE(output.contains("qml")) << output.toStdString();
  const QImage window(file);
  EXPECT_EQ(window.size(), QSize(900, 600));
  EXPECT_GT(ColoursOf(window), 1500);
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const tandem::VirtualDisplay display(1000, 700);
  qputenv("QT_QPA_PLATFORM", "xcb");
  qputenv("QT_QUICK_BACKEND", "software");
  const QCoreApplication app(argc, argv);
  return RUN_ALL_TESTS();
}
