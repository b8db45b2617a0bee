#include "viz/viewer/testing/viewer_fixture.h"

#include <QCoreApplication>
#include <QGuiApplication>
#include <QRect>
#include <QStringList>
#include <QTest>

#include "base/clock.h"
#include "viz/testing/pattern_check.h"
#include "viz/testing/virtual_display.h"

namespace tandem {
namespace {

constexpr int64_t kWatchdogNs = 60'000'000'000;

const VirtualDisplay* display = nullptr;

// Warnings and errors of Qt and QML; empty after each test.
QStringList complaints;
void Complain(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type == QtDebugMsg || type == QtInfoMsg) return;
  if (text.contains(QStringLiteral("XDG_RUNTIME_DIR"))) return;
  complaints << text;
}

// Searches the visual tree, because a repeater's items are not QObject
// children.
const QQuickItem* FindItem(const QQuickItem* root, const QString& name) {
  if (root->objectName() == name && root->isVisible()) return root;
  for (const QQuickItem* child : root->childItems()) {
    if (const QQuickItem* found = FindItem(child, name)) return found;
  }
  return nullptr;
}

}  // namespace

ViewerOptions ViewerTest::Bare() {
  ViewerOptions options;
  options.image_only = true;
  options.width = 640;
  options.height = 480;
  return options;
}

PatternRun ViewerTest::Slow(uint32_t width, uint32_t height,
                            uint32_t channels) const {
  PatternRun pattern = {.run = run_, .hz = 8};
  pattern.geometry.width = width;
  pattern.geometry.height = height;
  pattern.geometry.channels = channels;
  return pattern;
}

void ViewerTest::Open(const ViewerOptions& options) {
  viewer_ = std::make_unique<Viewer>(options);
  scene_ = std::make_unique<Scene>(viewer_.get());
  window()->setPosition(0, 0);
  Await([&] { return window()->isExposed(); });
}

void ViewerTest::OpenRun(const PatternRun& run, ViewerOptions options) {
  publisher_ = std::make_unique<Publisher>(run);
  options.runs = {run.run};
  Open(options);
  AwaitStatus(QStringLiteral("connected"));
}

void ViewerTest::TearDown() {
  scene_ = nullptr;
  viewer_ = nullptr;
  EXPECT_TRUE(complaints.isEmpty())
      << complaints.join(QLatin1Char('\n')).toStdString();
  complaints.clear();
}

void ViewerTest::Await(const std::function<bool()>& done) {
  const int64_t begin_ns = MonotonicNanos();
  while (!done()) {
    ASSERT_LT(MonotonicNanos() - begin_ns, kWatchdogNs);
    QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
  }
}

void ViewerTest::AwaitStatus(const QString& status) {
  Await([&] { return tab()->status() == status; });
}

int ViewerTest::AwaitPattern(const PatternRun& run, ViewRect source) {
  if (source.width == 0) {
    source = {0, 0, static_cast<double>(run.geometry.width),
              static_cast<double>(run.geometry.height)};
  }
  PatternSeen seen;
  const int64_t begin_ns = MonotonicNanos();
  do {
    QTest::qWait(20);
    const QRect area(window()->position(), window()->size());
    seen = CheckPattern(GrabScreen(), area, run.geometry, source);
  } while (!seen.wrong.empty() &&
           MonotonicNanos() - begin_ns < kWatchdogNs / 4);
  EXPECT_EQ(seen.wrong, "");
  EXPECT_GT(seen.checked, 1000);
  return seen.step;
}

QImage ViewerTest::GrabScreen() { return display->Grab(); }

void ViewerTest::Press(Qt::Key key, Qt::KeyboardModifiers modifiers) {
  QTest::keyClick(window(), key, modifiers);
}

const QQuickItem* ViewerTest::Item(const QString& name) const {
  return FindItem(window()->contentItem(), name);
}

QString ViewerTest::TextOf(const char* name) const {
  const QQuickItem* item = Item(QString::fromLatin1(name));
  return item == nullptr ? QStringLiteral("no such item")
                         : item->property("text").toString();
}

QPoint ViewerTest::PointOf(double x, double y) const {
  const ViewRect target = tab()->view().Target();
  return Item(QStringLiteral("image"))
      ->mapToScene(
          QPointF(target.x + x * target.width, target.y + y * target.height))
      .toPoint();
}

}  // namespace tandem

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const tandem::VirtualDisplay virtual_display(1400, 1000);
  tandem::display = &virtual_display;
  qputenv("QT_QPA_PLATFORM", "xcb");
  QGuiApplication app(argc, argv);
  // The X server draws the cursor into the screen that the tests read.
  QGuiApplication::setOverrideCursor(Qt::BlankCursor);
  qInstallMessageHandler(tandem::Complain);
  return RUN_ALL_TESTS();
}
