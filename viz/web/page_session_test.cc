#include "viz/web/page_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/core/daemon_client.h"
#include "viz/core/testing/test_daemon.h"
#include "viz/testing/pattern.h"
#include "viz/web/page_model.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Got {
  Json head;
  std::string jpeg;  // "": a text message
};

// A browser in this process, over the real model and a real publisher.
class Browser {
 public:
  explicit Browser(PageModel* page_model)
      : model_(page_model), session_(page_model) {}

  bool Send(const Json& message) {
    return session_.Receive(message.dump(), MonotonicNanos());
  }
  bool SendText(absl::string_view text) {
    return session_.Receive(text, MonotonicNanos());
  }

  // Takes messages until one satisfies `is_wanted`; acknowledges pictures if
  // `draws`.
  Got Await(const std::function<bool(const Got&)>& is_wanted) {
    for (;;) {
      model_->Poll(MonotonicNanos());
      session_.Tick();
      while (std::optional<Got> got = Take()) {
        if (!got->jpeg.empty() && draws && got->head.at("sent") > 0) {
          EXPECT_TRUE(Send({{"do", "drawn"},
                            {"view", got->head.at("view")},
                            {"sent", got->head.at("sent")}}));
        }
        if (is_wanted(*got)) return *got;
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
  Got AwaitIs(const std::string& is) {
    return Await(
        [&](const Got& got) { return got.head.value("is", "") == is; });
  }
  Got AwaitPicture() {
    return Await([](const Got& got) { return !got.jpeg.empty(); });
  }

  std::optional<Got> Take() {
    const std::optional<PageMessage> message = session_.Next(MonotonicNanos());
    if (!message.has_value()) return std::nullopt;
    Got got;
    if (!message->binary) {
      got.head = Json::parse(message->bytes);
      return got;
    }
    uint32_t length = 0;
    std::memcpy(&length, message->bytes.data(), sizeof(length));
    got.head = Json::parse(message->bytes.substr(sizeof(length), length));
    got.jpeg = message->bytes.substr(sizeof(length) + length);
    return got;
  }

  bool draws = true;

 private:
  PageModel* const model_;
  PageSession session_;
};

// A run that a browser watches in view 1.
class WatchedRun : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(browser_.Send(
        {{"do", "watch"}, {"view", 1}, {"run", run_}, {"width", 64}}));
  }

  const std::string run_ = UniqueRegionName("page");
  const Publisher publisher_{{.run = run_}};
  PageModel model_{{}};
  Browser browser_{&model_};
};

TEST(PageSession, GreetsAndListsTheRuns) {
  const std::string run = UniqueRegionName("page");
  const Publisher publisher({.run = run});
  PageModel page_model({});
  Browser browser(&page_model);
  const Json hello = browser.AwaitIs("hello").head;
  EXPECT_EQ(hello.at("control"), false);
  EXPECT_THAT(hello.at("services").dump(), HasSubstr(R"("camera")"));
  const Got list = browser.Await([&](const Got& got) {
    return got.head.value("is", "") == "runs" &&
           got.head.at("runs").dump().find(run) != std::string::npos;
  });
  for (const Json& entry : list.head.at("runs")) {
    if (entry.at("run") != run) continue;
    EXPECT_EQ(entry.at("width"), 64);
    EXPECT_EQ(entry.at("watchable"), true);
    EXPECT_EQ(entry.at("kind"), "frames");
  }
}

TEST(PageSession, SendsNewPicturesOfAWatchedRun) {
  const std::string run = UniqueRegionName("page");
  const Publisher publisher({.run = run, .tiles = 4});
  PageModel page_model({});
  Browser browser(&page_model);
  ASSERT_TRUE(browser.Send(
      {{"do", "watch"}, {"view", 1}, {"run", run}, {"width", 64}}));
  int64_t before = -1;
  for (int i = 0; i < 5; ++i) {
    const Got picture = browser.AwaitPicture();
    EXPECT_EQ(picture.head.at("view"), 1);
    EXPECT_EQ(picture.head.at("tiles"), 4);
    EXPECT_GT(picture.head.at("step").get<int64_t>(), before);
    before = picture.head.at("step").get<int64_t>();
    EXPECT_EQ(picture.jpeg.substr(0, 2), "\xFF\xD8");
  }
}

TEST_F(WatchedRun, ABrowserThatDoesNotDrawGetsOnePicture) {
  browser_.draws = false;
  const Got first = browser_.AwaitPicture();
  const int64_t wanted = first.head.at("step").get<int64_t>() + 20;
  int numbers = 0;
  browser_.Await([&](const Got& got) {  // about a second
    EXPECT_TRUE(got.jpeg.empty());
    numbers += got.head.value("is", "") == "view";
    return numbers >= 4 && got.head.value("step", int64_t{0}) > wanted;
  });
  // Then it gets the newest one, not the next.
  ASSERT_TRUE(browser_.Send(
      {{"do", "drawn"}, {"view", 1}, {"sent", first.head.at("sent")}}));
  const Got second = browser_.AwaitPicture();
  EXPECT_GT(second.head.at("step").get<int64_t>(), wanted);
}

TEST(PageSession, AStillImageBecomesSharp) {
  const std::string run = UniqueRegionName("page");
  PatternRun still = {.run = run};
  still.still_after = 1;
  const Publisher publisher(still);
  PageModel page_model({});
  Browser browser(&page_model);
  ASSERT_TRUE(browser.Send(
      {{"do", "watch"}, {"view", 1}, {"run", run}, {"width", 64}}));
  const Got first = browser.AwaitPicture();
  const Got second = browser.AwaitPicture();
  EXPECT_EQ(first.head.at("step"), second.head.at("step"));
  EXPECT_LT(first.head.at("width"), 64);
  EXPECT_EQ(second.head.at("width"), 64);
}

TEST_F(WatchedRun, SendsNumbersAndTheirHistory) {
  const Got numbers = browser_.Await([](const Got& got) {
    return got.head.value("is", "") == "view" &&
           got.head.at("state") == "connected" &&
           !got.head.at("series").at("return").is_null();
  });
  EXPECT_EQ(numbers.head.at("view"), 1);
  EXPECT_EQ(numbers.head.at("state"), "connected");
  EXPECT_GT(numbers.head.at("series").at("return").at("points").size(), 0U);
  EXPECT_EQ(numbers.head.at("width"), 64);
}

TEST_F(WatchedRun, AFrozenViewGetsOnlyPicturesOfThePast) {
  // Half a second of tape.
  const Got before = browser_.Await([](const Got& got) {
    return got.head.value("is", "") == "view" &&
           got.head.at("tape_ms").get<int64_t>() > 500;
  });
  ASSERT_TRUE(browser_.Send({{"do", "freeze"}, {"view", 1}}));
  int pictures = 0;
  browser_.Await([&](const Got& got) {
    pictures += !got.jpeg.empty();
    return got.head.value("is", "") == "view" && got.head.at("frozen") == true;
  });
  EXPECT_EQ(pictures, 0);
  ASSERT_TRUE(browser_.Send({{"do", "seek"}, {"view", 1}, {"before_ms", 400}}));
  const Got past = browser_.AwaitPicture();
  EXPECT_GE(past.head.at("before_ms").get<int64_t>(), 400);
  ASSERT_TRUE(browser_.Send({{"do", "live"}, {"view", 1}}));
  const Got live = browser_.AwaitPicture();
  EXPECT_FALSE(live.head.contains("before_ms"));
  EXPECT_GT(live.head.at("step").get<int64_t>(),
            past.head.at("step").get<int64_t>());
}

// The run goes on, and its tape with it.
TEST_F(WatchedRun, TimesOfAFrozenViewReferToTheFreeze) {
  const auto tape_of = [](int64_t ms) {
    return [ms](const Got& got) {
      return got.head.value("is", "") == "view" &&
             got.head.at("tape_ms").get<int64_t>() > ms;
    };
  };
  browser_.Await(tape_of(300));
  ASSERT_TRUE(browser_.Send({{"do", "freeze"}, {"view", 1}}));
  const Got frozen = browser_.Await([](const Got& got) {
    return got.head.value("is", "") == "view" && got.head.at("frozen") == true;
  });
  browser_.Await(tape_of(frozen.head.at("tape_ms").get<int64_t>() + 1000));
  ASSERT_TRUE(browser_.Send({{"do", "seek"}, {"view", 1}, {"before_ms", 100}}));
  const Got past = browser_.AwaitPicture();
  EXPECT_LT(past.head.at("step").get<int64_t>(),
            frozen.head.at("step").get<int64_t>());
  EXPECT_GE(past.head.at("before_ms").get<int64_t>(), 100);
}

TEST_F(WatchedRun, SendsASnapshotWithAllPixels) {
  browser_.AwaitPicture();
  ASSERT_TRUE(browser_.Send({{"do", "snapshot"}, {"view", 1}}));
  const Got png = browser_.Await(
      [](const Got& got) { return got.head.value("png", false); });
  EXPECT_EQ(png.jpeg.substr(0, 4), "\x89PNG");
}

TEST(PageSession, ReportsARunThatIsNotThere) {
  PageModel page_model({});
  Browser browser(&page_model);
  const std::string run = UniqueRegionName("nothing");
  int view = 0;
  const auto watched = [&](const std::string& name) {
    EXPECT_TRUE(browser.Send(
        {{"do", "watch"}, {"view", ++view}, {"run", name}, {"width", 64}}));
    return browser.Await([view](const Got& got) {
      return got.head.value("view", 0) == view &&
             got.head.value("is", "") == "view" &&
             got.head.at("reason") != "" &&
             got.head.at("reason") != "not searched yet";
    });
  };
  const Got numbers = watched(run);
  for (const std::string& name :
       {std::string("../../etc/passwd"), std::string(4000, 'a'),
        std::string("\0", 1), std::string("%s%n")}) {
    EXPECT_EQ(watched(name).head.at("state"), "fastlane-unavailable");
  }
  EXPECT_EQ(numbers.head.at("state"), "fastlane-unavailable");
  EXPECT_THAT(numbers.head.at("reason").get<std::string>(), HasSubstr(run));
  EXPECT_TRUE(numbers.head.at("age").is_null());
}

TEST(PageSession, TheLastViewsEndStopsTheReading) {
  const std::string run = UniqueRegionName("page");
  const Publisher publisher({.run = run});
  PageModel page_model({});
  {
    Browser one(&page_model);
    Browser other(&page_model);
    for (Browser* const browser : {&one, &other}) {
      ASSERT_TRUE(browser->Send(
          {{"do", "watch"}, {"view", 1}, {"run", run}, {"width", 64}}));
      browser->AwaitPicture();
    }
    EXPECT_EQ(page_model.feeds(), 1U);  // both share it
    ASSERT_TRUE(one.Send({{"do", "unwatch"}, {"view", 1}}));
    page_model.Poll(MonotonicNanos());
    EXPECT_EQ(page_model.feeds(), 1U);
  }
  page_model.Poll(MonotonicNanos());
  EXPECT_EQ(page_model.feeds(), 0U);
}

TEST(PageSession, RefusesActionsWithoutControl) {
  PageModel page_model({.control = false});
  Browser browser(&page_model);
  int id = 0;
  for (const char* const what : {"switch", "pause", "step", "mode", "record",
                                 "submit", "cancel", "hold", "<b>"}) {
    Json action = Json::parse(
        R"({"do": "act", "target": "x", "service": "camera", "text": "{}"})");
    action.update({{"id", ++id}, {"what", what}, {"on", true}});
    ASSERT_TRUE(browser.Send(action));
    const Got done = browser.AwaitIs("done");
    EXPECT_EQ(done.head.at("id"), id);
    EXPECT_THAT(done.head.at("error").get<std::string>(),
                HasSubstr("--control"));
  }
}

TEST(PageSession, RecordsAWatchedRun) {
  const std::string run = UniqueRegionName("page");
  const Publisher publisher({.run = run});
  PageModel page_model({.control = true, .recordings = ::testing::TempDir()});
  Browser browser(&page_model);
  const auto record = [&](bool on) {
    EXPECT_TRUE(browser.Send({{"do", "act"},
                              {"id", 1},
                              {"what", "record"},
                              {"target", run},
                              {"on", on}}));
    return browser.AwaitIs("done").head;
  };
  EXPECT_NE(record(true).at("error"), "");  // not watched
  ASSERT_TRUE(browser.Send(
      {{"do", "watch"}, {"view", 1}, {"run", run}, {"width", 64}}));
  EXPECT_EQ(record(true).at("error"), "");
  EXPECT_NE(record(true).at("error"), "");  // already
  for (int i = 0; i < 3; ++i) browser.AwaitPicture();
  // It goes on without a view.
  ASSERT_TRUE(browser.Send({{"do", "unwatch"}, {"view", 1}}));
  for (int i = 0; i < 20; ++i) {
    page_model.Poll(MonotonicNanos());
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(page_model.records());
  const Json saved = record(false);
  EXPECT_EQ(saved.at("error"), "");
  EXPECT_FALSE(page_model.records());
  const std::string text = saved.at("text");
  ASSERT_THAT(text, HasSubstr("Saved "));
  EXPECT_GT(std::filesystem::file_size(text.substr(6)), 500U);
}

TEST(PageSession, SendsOnlyRunsOfTheDaemonThatHaveChanged) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, [](const DaemonRuns&) { return true; });
  ASSERT_TRUE(client.Submit(ConfigOf("exit 0")).ok());
  AwaitState(client, "TERM");
  PageModel page_model({.daemon_target = daemon.target()});
  Browser browser(&page_model);
  ASSERT_TRUE(browser.Send({{"do", "daemon"}, {"on", true}}));
  const Json first = browser.AwaitIs("daemon").head;
  EXPECT_EQ(first.at("all"), true);
  EXPECT_EQ(first.at("runs").size(), 1U);
  const std::string moving =
      *client.Submit(ConfigOf("while :; do echo $STEP; sleep 0.05; done"));
  for (int i = 0; i < 3; ++i) {
    Json runs;  // empty: only the daemon's state has changed
    while (runs.empty()) runs = browser.AwaitIs("daemon").head.at("runs");
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs.at(0).at("run"), moving);
  }
  ASSERT_TRUE(client.Cancel(moving).ok());
  ASSERT_TRUE(browser.Send({{"do", "daemon"}, {"on", true}}));
  EXPECT_EQ(browser.AwaitIs("daemon").head.at("runs").size(), 2U);
}

TEST(PageSession, ReportsTheReasonOfAFailedAction) {
  PageModel page_model({.control = true});
  Browser browser(&page_model);
  for (const char* const what : {"no-such-action", "cancel"}) {
    ASSERT_TRUE(browser.Send(
        {{"do", "act"}, {"id", 1}, {"what", what}, {"target", "x"}}));
    EXPECT_NE(browser.AwaitIs("done").head.at("error"), "");
  }
  ASSERT_TRUE(browser.Send({{"do", "act"},
                            {"id", 1},
                            {"what", "switch"},
                            {"target", "x"},
                            {"service", "<b>"},
                            {"on", true}}));
  EXPECT_THAT(browser.AwaitIs("done").head.at("error").get<std::string>(),
              HasSubstr("service"));
}

TEST(PageSession, ShowsAnEnginesReport) {
  const std::string run = UniqueRegionName("page");
  const Publisher publisher({.kind = PatternRun::Kind::kRegion, .run = run});
  PageModel page_model({});
  Browser browser(&page_model);
  ASSERT_TRUE(browser.Send({{"do", "panel"}, {"region", run}}));
  // At first the region may not be there yet.
  const Got panel = browser.Await([](const Got& got) {
    return got.head.value("is", "") == "panel" &&
           got.head.at("report").at("known") == true;
  });
  EXPECT_EQ(panel.head.at("region"), run);
  EXPECT_THAT(panel.head.at("report").at("rows").dump(), HasSubstr("alive"));
}

// Otherwise a page could show a switch as it was before the user's click.
TEST(PageSession, NoReportFromBeforeAnActionFollowsItsResult) {
  const std::string run = UniqueRegionName("page");
  const Publisher publisher({.kind = PatternRun::Kind::kRegion, .run = run});
  PageModel page_model({.control = true});
  const auto report_at = [&](int64_t now_ns, int64_t not_before_ns) {
    std::string report;
    while ((report = page_model.Report(run, now_ns, not_before_ns)).empty()) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return report;
  };
  const std::string first = report_at(1, 0);
  EXPECT_EQ(page_model.Report(run, 2, 0), first);  // not older than a second
  EXPECT_EQ(page_model.Report(run, 2, 2), "");
  report_at(3, 2);
  Browser browser(&page_model);
  ASSERT_TRUE(browser.Send({{"do", "panel"}, {"region", run}}));
  browser.AwaitIs("panel");
  ASSERT_TRUE(browser.Send(
      {{"do", "act"}, {"id", 1}, {"what", "step"}, {"target", run}}));
  browser.AwaitIs("done");
  const int64_t done_ns = MonotonicNanos();
  EXPECT_EQ(page_model.Report(run, done_ns, done_ns), "");
  browser.AwaitIs("panel");  // the same report is sent once more
}

TEST(PageSession, EndsABrowserThatSendsNonsense) {
  PageModel page_model({});
  for (const char* const text :
       {"", "null", "[]", "{", "{}", R"({"do": 1})", R"({"do": "fly"})",
        R"({"do": "fly", "view": 1})", R"({"do": "watch"})",
        R"({"do": "watch", "view": 0, "run": "x", "width": 1})",
        R"({"do": "watch", "view": 1, "run": 7, "width": 1})",
        R"({"do": "watch", "view": 1, "run": "x", "width": 0})",
        R"({"do": "watch", "view": 1, "run": "x", "width": 1e99})",
        R"({"do": "watch", "view": 1.5, "run": "x", "width": 1})",
        R"({"do": "act", "id": -1, "what": "pause"})",
        R"({"do": "curves", "id": 1, "run": "x", "points": 9, "which": [-1]})",
        R"({"do": "act", "id": 1, "what": "pause", "on": 1})",
        R"({"do": "daemon"})"}) {
    PageSession session(&page_model);
    // A view that has ended is no error, whatever the message.
    if (absl::string_view(text).find("fly\", \"view") !=
        absl::string_view::npos) {
      EXPECT_TRUE(session.Receive(text, 0)) << text;
      continue;
    }
    EXPECT_FALSE(session.Receive(text, 0)) << text;
  }
  PageSession session(&page_model);
  EXPECT_FALSE(session.Receive(std::string(100'000, '['), 0));
  EXPECT_FALSE(session.Receive(R"({"do":"watch","view":1,"width":1,"run":")" +
                                   std::string(5000, 'x') + "\"}",
                               0));
}

TEST(PageSession, LimitsItsViewsAndActions) {
  PageModel page_model({});
  PageSession session(&page_model);
  const auto watch = [&](size_t view) {
    const Json message = {
        {"do", "watch"}, {"view", view}, {"run", "x"}, {"width", 64}};
    return session.Receive(message.dump(), 0);
  };
  for (size_t i = 1; i <= PageSession::kMostViews; ++i) EXPECT_TRUE(watch(i));
  EXPECT_FALSE(watch(PageSession::kMostViews + 1));
  EXPECT_FALSE(watch(1));  // twice
  bool refused = false;
  for (size_t i = 0; i <= PageSession::kMostActions; ++i) {
    refused = !session.Receive(
        R"({"do":"act","id":1,"what":"pause","target":"x","on":true})", 0);
  }
  EXPECT_TRUE(refused);
}

TEST(PageSession, EndsABrowserThatReadsNoRefusals) {
  PageModel page_model({});
  PageSession session(&page_model);
  PageSession other(&page_model);
  const auto watch = [](PageSession* by, size_t view) {
    const Json message = {{"do", "watch"},
                          {"view", view},
                          {"run", absl::StrCat("x", view)},
                          {"width", 64}};
    return by->Receive(message.dump(), 0);
  };
  for (size_t i = 1; i <= PageModel::kMostFeeds; ++i) {
    ASSERT_TRUE(watch(&session, i));
  }
  size_t refusals = 0;
  while (watch(&other, 1000 + refusals)) {
    ASSERT_LE(++refusals, PageSession::kMostViews);
  }
  EXPECT_GT(refusals, 0u);
}

}  // namespace
}  // namespace tandem
