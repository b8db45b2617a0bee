// A Qt program of its own with a FastLaneTab: of Tandem, it knows this header.
// Saves what its window shows once the run is live.
//
//   embedding_program RUN FILE.png
#include <QApplication>
#include <QPixmap>
#include <QTabWidget>
#include <QTimer>
#include <cstdio>

#include "viz/viewer/fast_lane_tab.h"

int main(int argc, char** argv) {
  QApplication app(argc, argv);
  if (argc != 3) return 2;
  QTabWidget window;
  auto* const tab = new tandem::FastLaneTab(
      QString::fromLocal8Bit(argv[1]), QStringLiteral("walker"),
      {.run_mode = QStringLiteral("policy_eval"), .dark = false});
  window.addTab(tab, tab->runId());
  window.resize(900, 600);
  window.show();
  QObject::connect(tab, &tandem::FastLaneTab::statusChanged,
                   [](const QString& status) {
                     std::printf("%s\n", qPrintable(status));
                     std::fflush(stdout);
                   });
  QTimer timer;
  QObject::connect(&timer, &QTimer::timeout, [&] {
    if (tab->status() != QStringLiteral("connected")) return;
    window.grab().save(QString::fromLocal8Bit(argv[2]), "PNG");
    QApplication::quit();
  });
  timer.start(200);
  return QApplication::exec();
}
