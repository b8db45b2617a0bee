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
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "viz/core/daemon_client.h"
#include "viz/core/engine_control.h"
#include "viz/core/testing/test_daemon.h"
#include "viz/core/viewer_options.h"
#include "viz/viewer/testing/viewer_fixture.h"

namespace tandem {
namespace {

constexpr char kSleeps[] =
    "echo $STEP; echo $EPISODE; echo trouble >&2; exec sleep 1000";

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
}

TEST_F(ActionsTest, ListsTheDaemonsRunsWithTheirStepsAndEpisodes) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  ViewerOptions options;
  options.daemon.target = daemon.target();
  Open(options);
  Press(Qt::Key_L);
  Await([&] {
    return TextOf("daemonState").startsWith(QStringLiteral("0 runs"));
  });
  const absl::StatusOr<std::string> run_id = client.Submit(ConfigOf(kSleeps));
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  const auto state = [&] {
    const QVariantList runs = viewer_->daemon()->property("runs").toList();
    return runs.isEmpty() ? QString()
                          : runs[0].toMap()[QStringLiteral("state")].toString();
  };
  Await([&] { return state() == QStringLiteral("EXEC"); });
  Await([&] {
    return TextOf("facts-test")
        .contains(QStringLiteral("1 episodes, mean return 1.5 of the last 1"));
  });
  Click(QStringLiteral("job-test"));
  EXPECT_EQ(viewer_->daemon()->property("chosen").toString().toStdString(),
            *run_id);
  Save(QStringLiteral("slow-lane"));
  daemon.Kill();
  Await([&] { return state() == QStringLiteral("EXEC, unreachable"); });
  Save(QStringLiteral("daemon-gone"));
  daemon.Start();
  Await([&] { return state() == QStringLiteral("EXEC"); });
  ASSERT_TRUE(client.Cancel(*run_id).ok());
  Await([&] { return state() == QStringLiteral("TERM"); });
  EXPECT_TRUE(TextOf("facts-test").contains(QStringLiteral("1 steps")));
}

TEST_F(ActionsTest, OpensThePageOfTheShownRunInABrowser) {
  // Qt opens addresses by the first xdg-open of PATH.
  const QTemporaryDir folder;
  const std::string opened = folder.filePath("opened").toStdString();
  std::ofstream(folder.filePath("xdg-open").toStdString())
      << "#!/bin/sh\necho \"$1\" >> " << opened << "\n";
  QFile::setPermissions(folder.filePath("xdg-open"),
                        QFile::ReadOwner | QFile::ExeOwner);
  qputenv("PATH", folder.path().toUtf8() + ":" + qgetenv("PATH"));
  const auto addresses = [&] {
    std::vector<std::string> lines;
    std::ifstream file(opened);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  };
  OpenRun({.run = run_});
  Press(Qt::Key_P);
  Await([&] { return addresses().size() == 1; });
  const std::string first = addresses()[0];
  EXPECT_TRUE(absl::StartsWith(first, "http://127.0.0.1:"));
  EXPECT_TRUE(absl::StrContains(first, "/?token="));
  EXPECT_TRUE(absl::EndsWith(first, "&run=" + run_));
  Press(Qt::Key_Home);
  Press(Qt::Key_P);  // the same program serves the chosen run of the list
  Await([&] { return addresses().size() == 2; });
  EXPECT_TRUE(
      absl::StartsWith(addresses()[1], first.substr(0, first.find("&run="))));
}

TEST_F(ActionsTest, OpensTheFramesOfARunThatWantsItAndShowsItsEnd) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  nlohmann::json config = nlohmann::json::parse(ConfigOf(R"(
echo $STEP
echo '{"batch_index": 2, "episodes": 20}' > $TANDEM_RUN_DIR/eval_summary.json
exec viz/testing/publish_pattern tab-$TANDEM_RUN_ID region)"));
  config["metadata"]["tandem"]["fast_lane"] = nlohmann::json::object();
  AwaitRuns(client, [](const DaemonRuns&) { return true; });
  const absl::StatusOr<std::string> run_id = client.Submit(config.dump());
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  ViewerOptions options;
  options.daemon.target = daemon.target();
  Open(options);
  const QString frames =
      QStringLiteral("tab-") + QString::fromStdString(*run_id);
  Await([&] { return viewer_->current() != Viewer::kStartPage; });
  EXPECT_EQ(tab()->runId(), frames);
  Await([&] { return tab()->jobText() == QStringLiteral("EXEC"); });
  Await([&] {
    return TextOf("evaluation").contains(QStringLiteral("batch 2, 20"));
  });
  Save(QStringLiteral("linked-run"));
  ASSERT_TRUE(client.Cancel(*run_id).ok());
  Await([&] { return tab()->jobText().startsWith(QStringLiteral("TERM")); });
}

}  // namespace
}  // namespace tandem
