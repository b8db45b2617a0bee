// BatchWriter: adds a batch of events to its run, in a transaction.
//
// Data flow: an EventBatch -> the run's position and numbers -> rows with the
// next numbers, new position.
// Ownership: the store's thread. It caches the tables' values of runs between
// batches. After other code has changed these, or after a rollback of more than
// one failed Write, the caller must call Forget.

#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// A run's limit of names of scalars. Numbers of further names are dropped and
// counted (RunProgress::dropped_scalars).
inline constexpr size_t kMostScalarNames = 1'000;

// The result of a batch.
struct Appended {
  Numbers last;                // the run's highest seq_id of each stream
  uint64_t printed_steps = 0;  // up to the run's position, stored or not
  Numbers added;               // rows of this batch
  Numbers duplicate;           // events of this batch that were stored before
};

class BatchWriter {
 public:
  // `database`, of the newest schema, must outlive this object.
  explicit BatchWriter(Database* database) : database_(database) {}

  // Writes a batch, in a transaction. An event is a duplicate, and skipped, if
  // its number is not above the highest of its run, worker and stream. Number 0
  // means that the worker does not count; such an event is always added. In a
  // proxy's batch, which has positions, `begin` has the highest numbers.
  // Numbers of such batches and of others are independent. Errors:
  //   kNotFound            the run is unknown
  //   kFailedPrecondition  `begin` is not the run's position; the text has both
  //   kInvalidArgument     `end` without `begin` or before it, an empty run_id,
  //                        or text too large for SQLite
  //   storage failures     (IsStorageFailure)
  // After an error the caller must roll back the writes of this call.
  absl::StatusOr<Appended> Write(const v1::EventBatch& batch);

  // Clears the cache: the next Write reads the tables.
  void Forget() { runs_.clear(); }

 private:
  struct Run {
    int64_t run = 0;
    Numbers last;
    v1::Position position;
    // By worker_id: the highest published number of each stream.
    absl::flat_hash_map<std::string, Numbers> sources;
    // Of scalars, with their name_id; empty: not read yet, or none.
    absl::flat_hash_map<std::string, int64_t> names;
  };
  absl::StatusOr<Appended> WriteBatch(const v1::EventBatch& batch);
  absl::StatusOr<Run*> Find(const std::string& run_id);
  absl::StatusOr<Numbers*> FindSource(Run* run, const std::string& worker_id);
  template <typename Event>
  absl::Status WriteEvents(
      Stream stream, const google::protobuf::RepeatedPtrField<Event>& events,
      const std::string& worker_id, Run* run, Numbers* source,
      Appended* appended);
  // Writes a row for each number of an event, by a statement that has run,
  // seq_id and worker. Returns false if it has none of a known name; adds the
  // dropped numbers to `dropped`.
  absl::StatusOr<bool> WriteNumbers(const v1::Scalars& event, Run* run,
                                    Statement* insert, uint64_t* dropped);
  // Returns the name_id, of a new name too; 0: the run has the most names.
  absl::StatusOr<int64_t> FindName(Run* run, const std::string& name);

  Database* const database_;
  absl::flat_hash_map<std::string, Run> runs_;
};

}  // namespace tandem::slow_lane
