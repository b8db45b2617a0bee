// EventReader: reads a run's durable events from the tables.
//
// Data flow: run, stream, number -> a short read with its own snapshot -> an
// EventBatch.
// Ownership: one thread at a time; any number of readers in parallel to the
// store. It holds no snapshot between two calls, so that the write-ahead log
// can be emptied.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// The progress of a run, from one snapshot.
struct RunProgress {
  Numbers last;                  // rows of each stream: numbers have no gaps
  v1::Position position;         // its proxy's; zero without a proxy
  uint64_t dropped_scalars = 0;  // numbers of names above kMostScalarNames
  int64_t run = 0;               // its number in the tables
  uint64_t episodes_before = 0;  // the last attempt
  std::optional<double> last_return;     // of the last attempt's newest episode
  std::optional<int64_t> last_event_ns;  // the newest timestamp since 1970 of
                                         // each stream's last row
};

// Reads a run's progress by the caller's connection. Errors: kNotFound for an
// unknown run; storage failures.
absl::StatusOr<RunProgress> ReadProgress(Database& database,
                                         const std::string& run_id);

// The total_rewards of the newest episodes of a run's last attempt.
struct LastReturns {
  static constexpr uint32_t kMost = 100;

  uint32_t count = 0;
  double mean = 0;
  double deviation = 0;  // of the sample; 0 of fewer than two
};

class EventReader {
 public:
  struct Limits {
    size_t max_rows = 1'000;
    // The maximum of text in the rows; the row that exceeds it is the last one.
    size_t max_bytes = size_t{1} << 20;
  };

  // Errors: as Database::Open.
  static absl::StatusOr<std::unique_ptr<EventReader>> Open(
      const std::string& path);
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Adds rows with seq_id > since to `batch`, in order and without a gap.
  // Returns their number, 0 if there are none. Steps and episodes get their
  // run_id; seq_id is the table's number. The batch's own run_id, worker_id and
  // positions do not change. Errors: kNotFound for an unknown run; storage
  // failures, after which some rows may have been added.
  absl::StatusOr<size_t> Read(const std::string& run_id, Stream stream,
                              uint64_t since, const Limits& limits,
                              v1::EventBatch* batch);

  absl::StatusOr<RunProgress> Progress(const std::string& run_id) {
    return ReadProgress(*database_, run_id);
  }

  // Returns the run's last returns; reads them only if it has episodes, or an
  // attempt, that the last call for this run did not see. Errors: storage
  // failures.
  absl::StatusOr<LastReturns> Returns(const RunProgress& progress);

  // For the reads of run_table.h.
  Database& database() { return *database_; }

 private:
  explicit EventReader(std::unique_ptr<Database> database)
      : database_(std::move(database)) {}

  struct SeenReturns {
    uint64_t before = 0;  // the last attempt
    uint64_t episodes = 0;
    LastReturns returns;
  };

  std::unique_ptr<Database> database_;
  absl::flat_hash_map<int64_t, SeenReturns> returns_;  // by RunProgress::run
};

}  // namespace tandem::slow_lane
