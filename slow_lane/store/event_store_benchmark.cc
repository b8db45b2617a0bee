// Measures steps of about 250 bytes: from batches to durable rows, and from
// rows to batches.
//   bazel run //slow_lane/store:event_store_benchmark
// The database is in the folder TEST_TMPDIR, else in /tmp. It must be on a disk
// for useful results. cpu_us: CPU time of the store's thread for a row.
#include <benchmark/benchmark.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

constexpr uint64_t kBatchRows = 1'000;
constexpr uint64_t kRoundRows = 500'000;  // in one iteration

double ThreadSecs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

// Returns the bytes that this process has written, to log and table file.
double WrittenBytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  double bytes = 0;
  while (io >> name >> bytes) {
    if (name == "wchar:") return bytes;
  }
  return 0;
}

std::string RunId(uint64_t run) { return absl::StrCat("run", run); }

// Makes a batch as a proxy does from half_cheetah's lines of 256 bytes of JSON.
std::shared_ptr<const v1::EventBatch> BatchFrom(uint64_t run, uint64_t first,
                                                uint64_t rows) {
  auto batch = std::make_shared<v1::EventBatch>();
  batch->set_run_id(RunId(run));
  batch->set_worker_id("worker-0");
  for (uint64_t number = first; number < first + rows; ++number) {
    gymgui::trainer::RunStep& step = *batch->add_steps();
    step.set_seq_id(number);
    step.set_episode_index(number / 1'000);
    step.set_step_index(number % 1'000);
    step.set_action_json("[0.1234,-0.4321,0.9876,0.5,-0.25,0.125]");
    step.set_observation_json(
        "[0.01234,1.23456,-0.98765,0.45678,1.11111,-0.22222,0.33333,0.44444,"
        "0.55555,-0.66666,0.77777,0.88888,-0.99999,1.23123,0.98798,0.12312,"
        "0.65432]");
    step.set_reward(0.25 + static_cast<double>(number) / 1e6);
    step.mutable_timestamp()->set_seconds(1'700'000'000);
    step.mutable_timestamp()->set_nanos(static_cast<int32_t>(number % 1'000));
    step.set_payload_version(1);
  }
  return batch;
}

std::unique_ptr<EventStore> NewStore(const TestFolder& folder, uint64_t runs,
                                     int page_bytes, int checkpoint_mib) {
  auto store = EventStore::Open(
      folder.File("tandem.db"),
      {.checkpoint_bytes = static_cast<size_t>(checkpoint_mib) << 20,
       .page_bytes = page_bytes});
  if (!store.ok()) std::abort();
  for (uint64_t run = 0; run < runs; ++run) {
    if (!AddRun(**store, RunId(run)).ok()) std::abort();
  }
  return *std::move(store);
}

// Returns the CPU time of the store's thread so far.
double StoreSecs(EventStore& store) {
  double secs = 0;
  if (!PostAndWait(store, [&](Database&) {
         secs = ThreadSecs();
         return absl::OkStatus();
       }).ok()) {
    std::abort();
  }
  return secs;
}

// Appends `batches`, and waits until they are durable.
void AppendAll(
    EventStore& store,
    const std::vector<std::shared_ptr<const v1::EventBatch>>& batches) {
  for (const auto& batch : batches) {
    WaitForRoom(store);
    store.Append(batch, [](const absl::StatusOr<Appended>& appended) {
      if (!appended.ok()) std::abort();
    });
  }
  StoreSecs(store);
}

// Several runs append in turn, `batch_rows` each.
void AppendSteps(benchmark::State& state) {
  const auto runs = static_cast<uint64_t>(state.range(0));
  const auto batch_rows = static_cast<uint64_t>(state.range(1));
  TestFolder folder;
  auto store = NewStore(folder, runs, static_cast<int>(state.range(2)),
                        static_cast<int>(state.range(3)));
  uint64_t next = 1;
  double store_secs = 0;
  const double written = WrittenBytes();
  uint64_t rows = 0;
  for ([[maybe_unused]] const auto _ : state) {
    state.PauseTiming();
    std::vector<std::shared_ptr<const v1::EventBatch>> batches;
    uint64_t made = 0;
    for (; made < kRoundRows; made += runs * batch_rows, next += batch_rows) {
      for (uint64_t run = 0; run < runs; ++run) {
        batches.push_back(BatchFrom(run, next, batch_rows));
      }
    }
    const double before = StoreSecs(*store);
    state.ResumeTiming();
    AppendAll(*store, batches);
    store_secs += StoreSecs(*store) - before;
    rows += made;
  }
  state.SetItemsProcessed(static_cast<int64_t>(rows));
  state.counters["cpu_us"] = store_secs / static_cast<double>(rows) * 1e6;
  const double log_mib = static_cast<double>(std::filesystem::file_size(
                             folder.File("tandem.db-wal"))) /
                         (1 << 20);
  store = nullptr;
  state.counters["wal_mib"] = log_mib;
  state.counters["written_bytes"] =
      (WrittenBytes() - written) / static_cast<double>(rows);
  state.counters["row_bytes"] = static_cast<double>(std::filesystem::file_size(
                                    folder.File("tandem.db"))) /
                                static_cast<double>(rows);
}
BENCHMARK(AppendSteps)
    ->ArgNames({"runs", "batch", "page", "checkpoint_mib"})
    ->Args({1, kBatchRows, 8'192, 32})
    ->Args({100, kBatchRows, 8'192, 32})
    ->Args({100, 20, 8'192, 32})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(4)
    ->UseRealTime();

// A resume: reads all rows of one run, after `runs` runs appended in turn.
void ReadSteps(benchmark::State& state) {
  const auto runs = static_cast<uint64_t>(state.range(0));
  TestFolder folder;
  {
    auto store = NewStore(folder, runs, static_cast<int>(state.range(1)), 32);
    for (uint64_t first = 1; first < kRoundRows / runs; first += kBatchRows) {
      std::vector<std::shared_ptr<const v1::EventBatch>> batches;
      for (uint64_t run = 0; run < runs; ++run) {
        batches.push_back(BatchFrom(run, first, kBatchRows));
      }
      AppendAll(*store, batches);
    }
  }
  auto reader = EventReader::Open(folder.File("tandem.db"));
  if (!reader.ok()) std::abort();
  uint64_t rows = 0;
  v1::EventBatch batch;
  for ([[maybe_unused]] const auto _ : state) {
    uint64_t since = 0;
    while (true) {
      batch.Clear();
      auto count = (*reader)->Read("run0", Stream::kSteps, since, {}, &batch);
      if (!count.ok()) std::abort();
      if (*count == 0) break;
      since += *count;
    }
    rows += since;
  }
  state.SetItemsProcessed(static_cast<int64_t>(rows));
}
BENCHMARK(ReadSteps)
    ->ArgNames({"runs", "page"})
    ->Args({1, 8'192})
    ->Args({100, 8'192})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace tandem::slow_lane

BENCHMARK_MAIN();
