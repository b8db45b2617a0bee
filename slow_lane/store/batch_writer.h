// BatchWriter: adds a batch of events to its run, within a transaction.
//
// Data flow: an EventBatch -> what its run has already (position, numbers) ->
// rows with the next numbers, new position.
// Ownership: the store's thread's. What it remembers of runs between batches is
// what the tables say; when they were changed by others or rolled back beyond
// one failed Write, Forget.
//
//   database->Begin();
//   absl::StatusOr<Appended> appended = writer.Write(batch);
//   if (appended.ok()) return database->Commit();
//   database->Rollback();
//   writer.Forget();

#ifndef TANDEM_SLOW_LANE_STORE_BATCH_WRITER_H_
#define TANDEM_SLOW_LANE_STORE_BATCH_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// What became of a batch.
struct Appended {
  Numbers last;                // the run's highest seq_id of each stream
  uint64_t printed_steps = 0;  // up to the run's position, kept or not
  Numbers added;               // rows of this batch
  Numbers duplicate;           // events of this batch that were known already
};

class BatchWriter {
 public:
  // `database`, of the newest schema, outlives this.
  explicit BatchWriter(Database* database) : database_(database) {}

  // Within a transaction. An event whose number is not above the highest of its
  // run, worker and stream is a duplicate and passed over; number 0 says that
  // the worker doesn't count, and is always added. Of a batch with positions, a
  // proxy's, `begin` has the highest numbers; such batches and all others know
  // nothing of each other's. Errors:
  //   kNotFound            there is no such run
  //   kFailedPrecondition  `begin` is not the run's position; both are named
  //   kInvalidArgument     `end` without `begin` or before it, an empty run_id,
  //                        or text too large for SQLite
  //   storage failures     (IsStorageFailure)
  // After an error the caller rolls back what this call wrote.
  absl::StatusOr<Appended> Write(const v1::EventBatch& batch);

  // Reads everything again from the tables next time.
  void Forget() { runs_.clear(); }

 private:
  struct Run {
    int64_t run = 0;
    Numbers last;
    v1::Position position;
    // By worker_id: the highest published number of each stream.
    absl::flat_hash_map<std::string, Numbers> sources;
  };
  absl::StatusOr<Appended> WriteBatch(const v1::EventBatch& batch);
  absl::StatusOr<Run*> Find(const std::string& run_id);
  absl::StatusOr<Run> Load(const std::string& run_id);
  absl::StatusOr<Numbers*> FindSource(Run* run, const std::string& worker_id);
  template <typename Event>
  absl::Status WriteEvents(
      Stream stream, const google::protobuf::RepeatedPtrField<Event>& events,
      const std::string& worker_id, Run* run, Numbers* source,
      Appended* appended);

  Database* const database_;
  absl::flat_hash_map<std::string, Run> runs_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_STORE_BATCH_WRITER_H_
