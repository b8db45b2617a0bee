// The rules of RunEnds and RunPauses, with a clock that the test advances. No
// process of the runs exists.

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/run_ends.h"
#include "slow_lane/daemon/run_pauses.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::ControlEvent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum gymgui::trainer::RunStatus;

class TestLink final : public ProxyLink {
 public:
  void Recorded() override { ++recorded_; }
  void Refuse(const std::string& /*reason*/) override {}

  std::atomic<int> recorded_ = 0;
};

// What a worker's stream was told. The loop's thread writes it; a test reads it
// when nothing is in progress.
class TestListener final : public ControlSink {
 public:
  void Send(const ControlEvent& event) override {
    told_.push_back(event.has_pause() ? "pause" : "resume");
  }

  std::vector<std::string> told_;
};

ControlEvent Answer() {
  ControlEvent event;
  event.set_pause(true);
  return event;
}

class RunRulesTest : public ::testing::Test {
 protected:
  RunRulesTest() {
    options_.data_dir =
        ::testing::TempDir() + "/" +
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(options_.data_dir);
    std::filesystem::create_directory(options_.data_dir);
    const std::string path = options_.data_dir + "/tandem.db";
    store_ = *EventStore::Open(path, {.full_sync = false});
    hub_ = std::make_unique<WatchHub>(*EventReader::Open(path));
    runs_ = std::make_unique<LiveRuns>(&loop_, store_.get(), hub_.get());
    starter_ = std::make_unique<RunStarter>(options_, &loop_, runs_.get());
    ends_ =
        std::make_unique<RunEnds>(options_, &loop_, runs_.get(), starter_.get(),
                                  store_.get(), hub_.get(), &sweeper_);
    pauses_ = std::make_unique<RunPauses>(&loop_, runs_.get());
    RunRow row;
    row.run_id = "run";
    row.config_json = "{}";
    row.token = "token";
    row.status = RUN_STATUS_EXEC;
    store_->Post(
        [row](Database& database) mutable { return InsertRun(database, &row); },
        [](const absl::Status&) {});
    On([&] {
      run_ = runs_->Add(row);
      run_->dispatched = true;
      run_->link = link_;
      starter_->TakeUp(run_);
    });
  }
  ~RunRulesTest() override {
    loop_.Stop();
    runs_->JoinWork();
    hub_->EndAll();
    store_->Close();
    hub_->Stop();
  }

  // Calls `task` on the loop's thread, and returns when it has been called.
  template <typename Task>
  void On(Task task) {
    std::promise<void> done;
    loop_.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Returns when the work that was begun before is done: on the run's
  // processes, by the store, and then by the loop.
  void Settle() {
    std::promise<void> free;
    loop_.Post([&] { runs_->WhenFree(run_, [&] { free.set_value(); }); });
    free.get_future().wait();
    std::promise<void> durable;
    loop_.Post([&] {
      runs_->WhenDurable([&](const absl::Status&) { durable.set_value(); });
    });
    durable.get_future().wait();
    On([] {});
  }
  void Advance(absl::Duration time) {
    now_ns_ += absl::ToInt64Nanoseconds(time);
    On([] {});  // wakes the loop, which then runs timers
    On([] {});
    Settle();
  }

  LiveRuns::Done Into(std::optional<absl::Status>* answer) {
    return [answer](const absl::Status& status) { *answer = status; };
  }
  std::optional<absl::Status> Cancel() {
    std::optional<absl::Status>* const answer = &answers_.emplace_back();
    On([&] { ends_->Cancel(run_, Into(answer)); });
    Settle();
    return *answer;
  }
  void WorkerExits() {
    v1::WorkerEnded ended;
    ended.set_exit_code(0);
    WorkerEnds(ended);
  }
  void WorkerIsKilled() {
    v1::WorkerEnded ended;
    ended.set_signal(9);
    WorkerEnds(ended);
  }
  void WorkerEnds(const v1::WorkerEnded& ended) {
    On([&] { ends_->WorkerEnded(run_, ended); });
    Settle();
  }
  // Adds a run that no process is started for.
  LiveRun* AddWaiting(const std::string& run_id, uint64_t cpus,
                      int32_t priority = 0, bool on_ray = false) {
    RunRow row;
    row.run_id = run_id;
    row.config_json = "{}";
    row.token = run_id;
    LiveRun* run = nullptr;
    On([&] {
      runs_->Store(
          [row](Database& database) mutable {
            return InsertRun(database, &row);
          },
          [](const absl::Status&) {});
      run = runs_->Add(row);
      run->config.cpus = cpus;
      run->config.priority = priority;
      run->config.on_ray = on_ray;
      run->next_start_ns = std::numeric_limits<int64_t>::max();
      starter_->Enqueue(run);
    });
    return run;
  }
  // Returns what each run waits for; "-": it is dispatched.
  std::vector<std::string> Dispatch(const std::vector<LiveRun*>& runs) {
    std::vector<std::string> waiting;
    On([&] {
      starter_->Open("address");
      starter_->Dispatch();
      starter_->NameWaits();
      for (const LiveRun* run : runs) {
        waiting.push_back(run->dispatched ? "-" : run->waiting_for);
      }
    });
    return waiting;
  }
  // `passed` without a sign of life, in one check of the limits.
  void Silent(absl::Duration passed) {
    On([&] { ends_->CheckLimits(run_, passed); });
    Settle();
  }
  std::string EndReason() {
    std::string reason;
    On([&] { reason = run_->end_reason.value_or(""); });
    return reason;
  }
  RunState State() {
    RunState state = RUN_STATUS_UNSPECIFIED;
    On([&] { state = run_->row.status; });
    return state;
  }

  void Listen(TestListener* listener, const std::string& worker_id = "worker") {
    On([&] { pauses_->Handle(run_, worker_id, ControlEvent(), listener); });
  }
  void Answers(TestListener* listener,
               const std::string& worker_id = "worker") {
    On([&] { pauses_->Handle(run_, worker_id, Answer(), listener); });
    Settle();
  }
  std::optional<absl::Status>* Pause() {
    std::optional<absl::Status>* const answer = &answers_.emplace_back();
    On([&] { pauses_->Pause(run_, Into(answer)); });
    return answer;
  }

  RunOptions options_;
  std::atomic<int64_t> now_ns_ = 1'000'000'000;
  std::deque<std::optional<absl::Status>> answers_;
  std::shared_ptr<TestLink> link_ = std::make_shared<TestLink>();
  std::unique_ptr<EventStore> store_;
  std::unique_ptr<WatchHub> hub_;
  std::unique_ptr<LiveRuns> runs_;
  std::unique_ptr<RunStarter> starter_;
  FolderSweeper sweeper_{options_.data_dir};
  std::unique_ptr<RunEnds> ends_;
  std::unique_ptr<RunPauses> pauses_;
  LiveRun* run_ = nullptr;
  EventLoop loop_{"rules", [this] { return now_ns_.load(); }};
};

TEST_F(RunRulesTest, CancelOfAWaitingRunIsAnsweredWhenItIsDurable) {
  On([&] { run_->dispatched = false; });
  EXPECT_EQ(Cancel(), absl::OkStatus());
  EXPECT_EQ(State(), RUN_STATUS_TERM);
}

TEST_F(RunRulesTest, CancelWaitsForTheLastEventsForTenSeconds) {
  EXPECT_EQ(Cancel(), std::nullopt);
  Advance(absl::Seconds(9));
  EXPECT_EQ(answers_[0], std::nullopt);
  Advance(absl::Seconds(1));
  EXPECT_EQ(answers_[0], absl::OkStatus());
  EXPECT_EQ(State(), RUN_STATUS_EXEC);
}

TEST_F(RunRulesTest, AllCancelsAreAnsweredAtTheEnd) {
  EXPECT_EQ(Cancel(), std::nullopt);
  EXPECT_EQ(Cancel(), std::nullopt);
  WorkerExits();
  EXPECT_EQ(answers_[0], absl::OkStatus());
  EXPECT_EQ(answers_[1], absl::OkStatus());
  EXPECT_EQ(Cancel(), absl::OkStatus());
  EXPECT_EQ(State(), RUN_STATUS_TERM);
}

TEST_F(RunRulesTest, ProxyIsToldOfTheDurableEndAndAgainAfterARepeat) {
  WorkerExits();
  EXPECT_EQ(link_->recorded_, 1);
  WorkerExits();
  EXPECT_EQ(link_->recorded_, 2);
}

TEST_F(RunRulesTest, SilenceIsAFaultIfSignsOfLifeAreExpected) {
  Silent(options_.fault_after);
  EXPECT_EQ(EndReason(), "");  // no heartbeat yet
  On([&] { run_->is_awaited = true; });
  Silent(options_.fault_after - absl::Seconds(1));
  EXPECT_EQ(EndReason(), "");
  Silent(absl::Seconds(1));
  EXPECT_THAT(EndReason(), HasSubstr("none for 5m (--fault_after)"));
  WorkerExits();
  EXPECT_EQ(State(), RUN_STATUS_FAULT);
}

TEST_F(RunRulesTest, SilenceCountsByTheConfigurationFirst) {
  On([&] {
    run_->is_awaited = true;
    run_->config.fault_after_secs = 0;
  });
  Silent(absl::Hours(10));
  EXPECT_EQ(EndReason(), "");
  On([&] { run_->config.fault_after_secs = 3; });
  Silent(absl::Seconds(3));
  EXPECT_THAT(EndReason(), HasSubstr("3s (metadata.tandem.fault_after)"));
}

TEST_F(RunRulesTest, SilenceDoesNotCountInAPauseNorWithoutAProxy) {
  On([&] {
    run_->is_awaited = true;
    run_->link = nullptr;
  });
  Silent(absl::Hours(1));
  On([&] {
    run_->link = link_;
    run_->row.status = RUN_STATUS_PAUSE;
  });
  Silent(absl::Hours(1));
  On([&] { run_->row.status = RUN_STATUS_EXEC; });
  Silent(options_.fault_after - absl::Seconds(1));
  EXPECT_EQ(EndReason(), "");
  Silent(absl::Seconds(1));
  EXPECT_NE(EndReason(), "");
}

TEST_F(RunRulesTest, QueueIsByPriorityAndAgeAndItsHeadDelaysTheOthers) {
  options_.machine = {.cpus = 4};  // `run_` has one
  LiveRun* const wide = AddWaiting("wide", 4);
  LiveRun* const small = AddWaiting("small", 1);
  LiveRun* const urgent = AddWaiting("urgent", 2, 1);
  LiveRun* const less_urgent = AddWaiting("less_urgent", 9, -1);
  EXPECT_THAT(Dispatch({urgent, wide, small, less_urgent}),
              ElementsAre("-", "4 of 4 cores", "1 of 4 cores; 1 run before it",
                          "4 of 4 cores; 2 runs before it"));
  WorkerExits();
  EXPECT_THAT(Dispatch({wide, small}),
              ElementsAre("4 of 4 cores", "1 of 4 cores; 1 run before it"));
  On([&] { ends_->End(urgent, RUN_STATUS_TERM, std::nullopt); });
  EXPECT_THAT(
      Dispatch({wide, small, less_urgent}),
      ElementsAre("-", "1 of 4 cores", "4 of 4 cores; 1 run before it"));
  On([&] { ends_->End(wide, RUN_STATUS_TERM, std::nullopt); });
  EXPECT_THAT(Dispatch({small, less_urgent}), ElementsAre("-", "4 of 4 cores"));
}

TEST_F(RunRulesTest, RunsThatReserveNothingPassTheQueue) {
  options_.machine = {.cpus = 1};
  LiveRun* const waits = AddWaiting("waits", 1);
  LiveRun* const on_ray = AddWaiting("on_ray", 8, 0, true);
  EXPECT_THAT(Dispatch({waits, on_ray}), ElementsAre("1 of 1 core", "-"));
  options_.machine = std::nullopt;  // --no_queue
  EXPECT_THAT(Dispatch({waits}), ElementsAre("-"));
}

TEST_F(RunRulesTest, KilledWorkerIsRestartedAsOftenAsItsConfigurationSays) {
  On([&] {
    run_->config.restart_max = 1;
    run_->config.restart_on = {"killed"};
    run_->row.attempt_started_ns = 5;
    run_->printed_steps = 7;
    run_->row.worker.set_pid(1);
    run_->row.proxy_starts = 3;
  });
  WorkerIsKilled();
  EXPECT_EQ(State(), RUN_STATUS_INIT);
  EXPECT_EQ(link_->recorded_, 1);
  On([&] {
    EXPECT_FALSE(run_->dispatched);
    EXPECT_EQ(run_->link, nullptr);
    EXPECT_EQ(run_->row.attempt, 2u);
    EXPECT_EQ(run_->row.attempt_printed, 7u);
  });
  // As the next daemon finds it.
  RunRow row;
  store_->Post(
      [&row](Database& database) {
        row = LoadRuns(database)->front();
        EXPECT_EQ(ReadAttempts(database, "run")->at(0).reason(),
                  "the worker ended by signal 9 (Killed)");
        return absl::OkStatus();
      },
      [](const absl::Status&) {});
  Settle();
  EXPECT_EQ(row.status, RUN_STATUS_INIT);
  EXPECT_EQ(row.attempt, 2u);
  EXPECT_EQ(row.attempt_started_ns, 0);
  EXPECT_EQ(row.proxy_starts, 0u);
  EXPECT_EQ(row.worker.pid(), 0);

  On([&] {
    run_->dispatched = true;
    runs_->MoveTo(run_, RUN_STATUS_HSHK);
  });
  WorkerIsKilled();
  EXPECT_EQ(State(), RUN_STATUS_FAULT);
}

TEST_F(RunRulesTest, NextAttemptIsNotDispatchedBeforeItIsDurable) {
  On([&] {
    run_->config.restart_max = 1;
    run_->config.restart_on = {"killed"};
    run_->next_start_ns = std::numeric_limits<int64_t>::max();
    v1::WorkerEnded ended;
    ended.set_signal(9);
    starter_->Open("address");
    ends_->WorkerEnded(run_, ended);
    starter_->Dispatch();
    EXPECT_FALSE(run_->dispatched);
  });
  Settle();
  EXPECT_THAT(Dispatch({run_}), ElementsAre("-"));
}

TEST_F(RunRulesTest, EndByTheDaemonIsFinal) {
  On([&] {
    run_->config.restart_max = 9;
    run_->config.restart_on = {"fault", "machine"};
  });
  EXPECT_EQ(Cancel(), std::nullopt);
  v1::WorkerEnded ended;
  ended.set_exit_code(3);
  WorkerEnds(ended);
  EXPECT_EQ(State(), RUN_STATUS_TERM);
}

TEST_F(RunRulesTest, MaxStepsCountsPrintedOrStoredOnesOfTheAttempt) {
  On([&] {
    run_->config.max_steps = 15;
    run_->row.attempt_begin[Stream::kSteps] = run_->last[Stream::kSteps] = 3;
    run_->row.attempt_printed = 10;
    run_->printed_steps = 24;
  });
  Silent(absl::ZeroDuration());
  EXPECT_EQ(EndReason(), "");
  On([&] { run_->last[Stream::kSteps] = 18; });
  Silent(absl::ZeroDuration());
  EXPECT_EQ(EndReason(), "schedule.max_steps = 15 reached");
}

TEST_F(RunRulesTest, PauseWithoutListenersIsAtOnce) {
  const std::optional<absl::Status>* const paused = Pause();
  Settle();
  EXPECT_EQ(*paused, absl::OkStatus());
  EXPECT_EQ(State(), RUN_STATUS_PAUSE);
}

TEST_F(RunRulesTest, PauseWaitsFiveSecondsForAnAnswerAndTheNextPauseForIt) {
  TestListener listener;
  Listen(&listener);
  const std::optional<absl::Status>* const first = Pause();
  const std::optional<absl::Status>* const second = Pause();
  Advance(RunPauses::kAnswerLimit - absl::Seconds(1));
  EXPECT_EQ(*first, std::nullopt);
  EXPECT_EQ(State(), RUN_STATUS_EXEC);
  Advance(absl::Seconds(1));
  EXPECT_EQ(*first, absl::OkStatus());
  EXPECT_EQ(*second, absl::OkStatus());
  EXPECT_EQ(State(), RUN_STATUS_PAUSE);
  std::optional<absl::Status> resumed;
  On([&] { pauses_->Resume(run_, Into(&resumed)); });
  Settle();
  EXPECT_EQ(resumed, absl::OkStatus());
  EXPECT_THAT(listener.told_, ElementsAre("resume", "pause", "resume"));
}

TEST_F(RunRulesTest, PauseWaitsForEachListenerThatIsThere) {
  TestListener one;
  TestListener other;
  TestListener third;
  Listen(&one, "one");
  Listen(&other, "other");
  Listen(&third, "third");
  const std::optional<absl::Status>* const paused = Pause();
  Answers(&one, "one");
  On([&] { pauses_->Forget(&third); });
  EXPECT_EQ(*paused, std::nullopt);
  Answers(&other, "other");
  EXPECT_EQ(*paused, absl::OkStatus());
  EXPECT_THAT(other.told_, ElementsAre("resume", "pause"));
}

TEST_F(RunRulesTest, NewerStreamOfAWorkerReplacesItsEarlierOne) {
  TestListener earlier;
  TestListener newer;
  Listen(&earlier);
  const std::optional<absl::Status>* const paused = Pause();
  Listen(&newer);
  Answers(&earlier);
  EXPECT_EQ(*paused, std::nullopt);
  Answers(&newer);
  EXPECT_EQ(*paused, absl::OkStatus());
  EXPECT_THAT(earlier.told_, ElementsAre("resume", "pause", "resume"));
  EXPECT_THAT(newer.told_, ElementsAre("pause"));
}

TEST_F(RunRulesTest, RunThatEndsDuringTheWaitIsNotPaused) {
  TestListener listener;
  Listen(&listener);
  const std::optional<absl::Status>* const paused = Pause();
  EXPECT_EQ(Cancel(), std::nullopt);
  WorkerExits();
  EXPECT_EQ(State(), RUN_STATUS_TERM);
  Answers(&listener);
  EXPECT_EQ((*paused)->code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RunRulesTest, StopEndsTheWaitsAndRefusesPauses) {
  TestListener listener;
  Listen(&listener);
  const std::optional<absl::Status>* const paused = Pause();
  On([&] { pauses_->Stop(); });
  EXPECT_EQ((*paused)->code(), absl::StatusCode::kAborted);
  EXPECT_EQ((*Pause())->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(State(), RUN_STATUS_EXEC);
}

}  // namespace
}  // namespace tandem::slow_lane
