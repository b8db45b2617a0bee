// What the window does with a real engine and a real daemon.
#include <gtest/gtest.h>

#include <QDir>
#include <QFile>
#include <QProcess>
#include <QQuickItem>
#include <QQuickWindow>
#include <QSignalSpy>
#include <QString>
#include <QTemporaryDir>
#include <QTest>
#include <cstdlib>
#include <string>

#include "absl/status/statusor.h"
#include "viz/core/engine_control.h"
#include "viz/core/testing/test_daemon.h"
#include "viz/core/viewer_options.h"
#include "viz/viewer/testing/viewer_fixture.h"

namespace tandem {
namespace {

constexpr char kSleeps[] = "echo $STEP; exec sleep 1000";

class ActionsTest : public ViewerTest {
 protected:
  void TearDown() override {
    ViewerTest::TearDown();
    if (engine_.state() != QProcess::NotRunning) {
      engine_.terminate();
      engine_.waitForFinished();
    }
  }

  void StartEngine() {
    engine_.start(QStringLiteral("engine_adapter/server/server"),
                  {QStringLiteral("--task=HalfCheetah-v5"),
                   QStringLiteral("--num_envs=4"),
                   QStringLiteral("--name=") + QString::fromStdString(run_)});
    ASSERT_TRUE(engine_.waitForStarted());
  }

  // Waits for the item, and clicks it.
  void Click(const QString& name) {
    Await([&] { return Item(name) != nullptr; });
    // A new item gets its place with the next frame.
    const QSignalSpy frames(window(), &QQuickWindow::frameSwapped);
    window()->update();
    Await([&] { return frames.count() > 0; });
    const QQuickItem* const item = Item(name);
    QTest::mouseClick(
        window(), Qt::LeftButton, {},
        item->mapToScene(QPointF(item->width() / 2, item->height() / 2))
            .toPoint());
  }
  void AwaitText(const char* name, const char* text) {
    Await([&] { return TextOf(name) == QString::fromUtf8(text); });
  }
  void SetText(const QString& name, const QString& text) {
    Await([&] { return Item(name) != nullptr; });
    const_cast<QQuickItem*>(Item(name))->setProperty("text", text);
  }
  // A picture in the test's outputs.
  void Save(const QString& name) {
    if (const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
      EXPECT_TRUE(viewer_->SaveWindow(
          QDir(QString::fromUtf8(folder)).filePath(name + ".png")));
    }
  }

  QProcess engine_;
};

TEST_F(ActionsTest, SwitchPauseStepAndSetTheModeOfAnEngine) {
  StartEngine();
  ViewerOptions options;
  options.runs = {run_};
  Open(options);
  Press(Qt::Key_E);
  AwaitText("service-camera", "camera: on");
  Click(QStringLiteral("service-camera"));
  AwaitText("service-camera", "camera: off");
  Save(QStringLiteral("engine"));
  Click(QStringLiteral("service-camera"));
  AwaitText("service-camera", "camera: on");

  absl::StatusOr<EngineControl> other = EngineControl::Attach(run_, "test");
  ASSERT_TRUE(other.ok()) << other.status();
  const auto mode = [&] { return other->ReadMode().value(); };
  EXPECT_FALSE(mode().paused);
  Click(QStringLiteral("enginePause"));
  Await([&] { return mode().paused; });
  Click(QStringLiteral("engineStep"));
  Click(QStringLiteral("engineResume"));
  Await([&] { return !mode().paused; });
  SetText(QStringLiteral("factor"), QStringLiteral("0.5"));
  Click(QStringLiteral("mode-realtime"));
  Await([&] { return mode().realtime_factor == 0.5; });
  EXPECT_EQ(mode().mode, "realtime");
  SetText(QStringLiteral("factor"), QStringLiteral("11"));
  Click(QStringLiteral("mode-realtime"));
  Await(
      [&] { return viewer_->message().contains(QStringLiteral("0.1 to 10")); });
}

TEST_F(ActionsTest, ARunWithoutAnEngineHasNoPanel) {
  OpenRun({.run = run_});
  Press(Qt::Key_E);
  Await([&] { return tab()->engineShown(); });
  EXPECT_EQ(Item(QStringLiteral("engineView")), nullptr);
  Press(Qt::Key_E);
  Await([&] { return Item(QStringLiteral("return")) != nullptr; });
}

TEST_F(ActionsTest, SubmitPauseFollowAndCancelARunOfTheDaemon) {
  TestDaemon daemon;
  ViewerOptions options;
  options.daemon_target = daemon.target();
  Open(options);
  Press(Qt::Key_L);
  const auto state = [&] {
    const QVariantList runs = viewer_->daemon()->property("runs").toList();
    return runs.isEmpty() ? QString()
                          : runs[0].toMap()[QStringLiteral("state")].toString();
  };
  Await([&] {
    return TextOf("daemonState").startsWith(QStringLiteral("0 runs"));
  });
  SetText(QStringLiteral("config"), QStringLiteral("no JSON"));
  Click(QStringLiteral("submit"));
  Await(
      [&] { return viewer_->message().contains(QStringLiteral("SubmitRun")); });
  const QTemporaryDir folder;
  QFile file(folder.filePath(QStringLiteral("run.json")));
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  const QString config = QString::fromStdString(ConfigOf(kSleeps));
  file.write(config.toUtf8());
  file.close();
  SetText(QStringLiteral("configPath"), file.fileName());
  Click(QStringLiteral("load"));
  EXPECT_EQ(TextOf("config"), config);
  Click(QStringLiteral("submit"));
  Await([&] { return state() == QStringLiteral("EXEC"); });
  Click(QStringLiteral("events-test"));
  Await([&] {
    return TextOf("eventsText") == QStringLiteral("1 steps, 0 episodes: live");
  });
  Save(QStringLiteral("slow-lane"));
  Click(QStringLiteral("hold-test"));
  Await([&] { return state() == QStringLiteral("PAUSE"); });
  Click(QStringLiteral("hold-test"));
  Await([&] { return state() == QStringLiteral("EXEC"); });
  Click(QStringLiteral("cancel-test"));
  Await([&] { return state() == QStringLiteral("TERM"); });
  EXPECT_TRUE(TextOf("eventsText").contains(QStringLiteral("1 steps")));
}

}  // namespace
}  // namespace tandem
