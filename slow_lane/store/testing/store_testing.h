// Helpers for tests of the store: a folder, runs, batches, and waits for an
// answer.
//
//   TestFolder folder;
//   auto store = EventStore::Open(folder.File("tandem.db"), {});
//   ASSERT_TRUE(AddRun(**store, "a").ok());
//   absl::StatusOr<Appended> appended = AppendAndWait(**store, Steps("a", 1,
//   9));

#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/run_table.h"

namespace tandem::slow_lane {

// A new folder, removed at the end.
class TestFolder {
 public:
  TestFolder() {
    path_ = absl::StrCat(testing::TempDir(), "store.XXXXXX");  // ends with /
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const {
    return absl::StrCat(path_, "/", name);
  }

 private:
  std::string path_;
};

inline RunRow RunNamed(const std::string& run_id) {
  RunRow run;
  run.run_id = run_id;
  run.run_name = absl::StrCat("name of ", run_id);
  run.config_json = "{}";
  run.digest = "d1";
  run.token = "t1";
  run.created_at_ns = 1'700'000'000'000'000'000;
  run.updated_at_ns = run.created_at_ns;
  return run;
}

inline absl::Status PostAndWait(EventStore& store, EventStore::Change change) {
  std::promise<absl::Status> done;
  store.Post(std::move(change),
             [&done](const absl::Status& status) { done.set_value(status); });
  return done.get_future().get();
}

inline void WaitForRoom(EventStore& store) {
  while (!store.HasRoom()) {
    PostAndWait(store, [](Database&) {
      return absl::OkStatus();
    }).IgnoreError();
  }
}

inline absl::Status AddRun(EventStore& store, const std::string& run_id) {
  return PostAndWait(store, [run_id](Database& database) {
    RunRow run = RunNamed(run_id);
    return InsertRun(database, &run);
  });
}

inline absl::StatusOr<Appended> AppendAndWait(EventStore& store,
                                              v1::EventBatch batch) {
  std::promise<absl::StatusOr<Appended>> done;
  store.Append(std::make_shared<const v1::EventBatch>(std::move(batch)),
               [&done](const absl::StatusOr<Appended>& appended) {
                 done.set_value(appended);
               });
  return done.get_future().get();
}

// Steps numbered first .. last of worker "w"; the step_index equals the source
// number.
inline v1::EventBatch Steps(const std::string& run_id, uint64_t first,
                            uint64_t last) {
  v1::EventBatch batch;
  batch.set_run_id(run_id);
  batch.set_worker_id("w");
  for (uint64_t number = first; number <= last; ++number) {
    gymgui::trainer::RunStep& step = *batch.add_steps();
    step.set_seq_id(number);
    step.set_step_index(number);
    step.set_reward(static_cast<double>(number) / 4);
    step.set_action_json("[0.5]");
  }
  return batch;
}

// Adds an event of scalars "name 0" and so on, without a number.
inline void AddScalars(uint64_t step, const std::vector<double>& values,
                       v1::EventBatch* batch) {
  v1::Scalars& event = *batch->add_scalars();
  event.set_step(step);
  event.mutable_timestamp()->set_seconds(1'700'000'000);
  event.set_worker_id("w");
  for (const double value : values) {
    event.add_names(absl::StrCat("name ", event.names_size()));
    event.add_values(value);
  }
}

}  // namespace tandem::slow_lane
