// EventStore: makes events and states of runs durable, exactly once.
//
// Data flow: any thread -> Append or Post -> a queue -> the store's one thread:
// queued items, up to a bound, in one transaction (group commit) -> SQLite,
// fsync -> the listener, then each item's `done`.
// Ownership: the daemon owns it. Batches are shared and never changed. The
// store's thread calls the callbacks: they must not block, throw, or call
// Close.
//
//   auto store = EventStore::Open("data/tandem.db", {});
//   (*store)->Post(
//       [run](Database& database) { return InsertRun(database, run.get()); },
//       [](const absl::Status& status) { ... });
//   (*store)->Append(batch, [](const absl::StatusOr<Appended>& appended) {
//     if (appended.ok()) Acknowledge();  // it is on the disk
//   });
//   (*store)->Close();
//
// State        entered                      Append, Post       state()
// ok           by Open, or once a commit    committed          OK
//              succeeds again
// degraded     the disk is full or broken,  wait; tried again  what is wrong
//              the file read-only or        each second, in
//              locked for over a second     their order
// slow         an item waits for longer     committed          kUnavailable
//              than slow_secs
// closed       by Close                     answered soon      kCancelled
//                                           with kCancelled
//
// An item is a batch or a change. Bytes and rows of a transaction are bounded,
// so that no run's events wait long for another run's.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/batch_writer.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

class EventStore {
 public:
  struct Options {
    // Each commit is on the disk before its acknowledgement. If false, a power
    // cut may lose the last commits, but never a part of one.
    bool full_sync = true;
    // The limit of HasRoom. Batches count with their serialized size.
    size_t max_queued_bytes = size_t{64} << 20;
    // The maximum of events in one transaction, for its time and memory. An
    // item that exceeds it has its own transaction.
    size_t max_transaction_bytes = size_t{8} << 20;
    size_t max_transaction_rows = 20'000;
    // The time for which Close continues to commit queued items.
    double close_secs = 1;
    // The size at which the write-ahead log is copied into the table's file.
    // Above four times this size the copy waits for readers to release the log.
    size_t checkpoint_bytes = size_t{32} << 20;
    // In state degraded: the time until the next try.
    double retry_secs = 1;
    // If an item waits longer for its commit, state() reports an error.
    double slow_secs = 5;
    int page_bytes = 8'192;
  };

  using AppendDone = absl::AnyInvocable<void(const absl::StatusOr<Appended>&)>;
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  using Change = absl::AnyInvocable<absl::Status(Database&)>;
  // Gets a run's highest numbers, and the number of steps that its proxy has
  // read; all are durable.
  using Listener = absl::AnyInvocable<void(
      const std::string& run_id, const Numbers& last, uint64_t printed_steps)>;

  // Opens or makes the file and starts the thread. Errors: as Database::Open
  // and MakeOrCheckSchema.
  static absl::StatusOr<std::unique_ptr<EventStore>> Open(
      const std::string& path, const Options& options);
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;
  ~EventStore();  // Close

  // Sets a function for each run that got rows or another position. It is
  // called after each commit, before the items' `done`. Call this at most once,
  // before the first Append.
  void SetListener(Listener listener);

  // Adds a batch's events to their run. Thread-safe; does not wait. Batches of
  // one thread keep their order. When the events are durable, `done` gets the
  // result; or
  //   kNotFound            the run is unknown
  //   kFailedPrecondition  the batch does not begin at the end of the last one
  //   kInvalidArgument     the batch contradicts itself
  //   kCancelled           the store was closed before; or, if it was degraded,
  //                        the error of its last try
  // After an error no event of the batch is stored; other batches are
  // unaffected.
  void Append(std::shared_ptr<const v1::EventBatch> batch, AppendDone done);

  // Makes another change, such as InsertRun (run_table.h), in order with the
  // batches. It must not begin or end a transaction, or change events. If it
  // returns an error, its writes are undone, and `done` gets the error. OK
  // means durable. After a storage failure it runs again from the start, so it
  // must not consume its captures. Thread-safe; does not wait.
  void Post(Change change, Done done);

  // Removes a run and its events. All readers lose them at once; the rows are
  // removed in small steps when the store is idle, also after a restart.
  // `done`: kNotFound, or OK when no reader can find the run. Thread-safe; does
  // not wait.
  void DeleteRun(const std::string& run_id, Done done);

  // Whether fewer than max_queued_bytes wait for a commit. A call that appends
  // for a client checks this before it reads more. Thread-safe.
  bool HasRoom() const;
  size_t queued_bytes() const;

  // The age of the oldest item that is not durable, in seconds; 0 if there is
  // none. Thread-safe.
  double oldest_queued_secs() const;

  // OK, or the reason for missing or late commits, as text for users.
  // Thread-safe.
  absl::Status state() const;

  // Commits queued items, for at most close_secs, and closes the file. Other
  // items are undone, and get kCancelled or the error that prevents their
  // commit. The thread continues: it answers later items, so that no caller
  // gets an answer inside its own call. A second call has no effect.
  // Thread-safe; blocks.
  void Close();

 private:
  // An item that waits for its commit: a batch, or a change.
  struct Item {
    std::shared_ptr<const v1::EventBatch> batch;
    Change change;  // if batch is nullptr
    AppendDone done;
    size_t bytes = 0;
    size_t rows = 0;
    int64_t queued_at_ns = 0;
    absl::StatusOr<Appended> result = Appended{};
    // The item failed by itself and so ended the transaction; the other items
    // are tried again without it.
    bool refused = false;
  };

  EventStore(std::unique_ptr<Database> database, const Options& options);
  void Enqueue(Item item);
  double OldestQueuedSecs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsClosing() const;
  // Whether Close was called and its time is over.
  bool MustStop() const;

  // Only the store's thread calls the next functions.
  void Run();
  // Returns items in order; none: the store is closing, or only leftover rows
  // remain.
  std::vector<Item> TakeItems();
  Item RemoveLeftovers();
  // Commits the items, with retries until they are durable or the store closes;
  // then answers them.
  void CommitPatiently(std::vector<Item>* items);
  // Commits all `items` in one transaction. OK: each has its result; those with
  // OK are durable. After an error nothing was committed.
  absl::Status CommitAll(std::vector<Item>* items);
  // A user may have removed the write-ahead log, which then only this
  // connection has. If so, copies its content into the table's file.
  absl::Status NoticeLostLog();
  // Detects writes of another process: a store, a shell.
  absl::Status NoticeOthers();
  // Applies an item in the transaction. OK: the item has its result, which may
  // be its own error. Otherwise the transaction must be rolled back.
  absl::Status ApplyOne(Item* item);
  absl::Status ApplyChange(Item* item);
  void TellListener(const std::vector<Item>& items);
  // Answers late items from closed_ until the destructor.
  void AnswerLate();
  void Checkpoint();

  const Options options_;
  // Only the store's thread uses these.
  std::unique_ptr<Database> database_;
  BatchWriter writer_;
  int64_t data_version_ = 0;
  int64_t log_pages_ = 0;  // of the write-ahead log, after the last commit
  int64_t checkpointed_at_ = 0;  // log_pages_ at the last checkpoint
  int64_t pages_per_checkpoint_ = 0;
  bool leftovers_ = true;  // there may be rows of deleted runs
  absl::Status given_up_;  // closing, and the error of the last try
  Listener listener_;      // set before the first batch

  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  // Of the queue, and of items being committed.
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The time of the first item being committed; empty between transactions.
  std::optional<int64_t> committing_since_ns_ ABSL_GUARDED_BY(mutex_);
  absl::Status state_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  // Once closing_.
  Deadline close_deadline_ ABSL_GUARDED_BY(mutex_) = Deadline::Infinite();
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // The destructor has begun.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Item> late_ ABSL_GUARDED_BY(mutex_);  // items after Close
  CondVar closed_wake_;

  std::thread thread_;
};

}  // namespace tandem::slow_lane
