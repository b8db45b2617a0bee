// EventStore: what makes events and states of runs durable, exactly once.
//
// Data flow: any thread -> Append or Post -> a queue -> the store's one thread:
// what is queued, up to a bound, in one transaction (group commit) -> SQLite,
// fsync -> the listener, then each item's `done`.
// Ownership: the daemon's. Batches are shared and not changed. Callbacks run on
// the store's thread: they must not block, throw, or call Close.
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
// An item is one of the two: a batch, or a change. Transactions are bounded by
// bytes and by rows, so that no run's events wait for long behind another's.

#ifndef TANDEM_SLOW_LANE_STORE_EVENT_STORE_H_
#define TANDEM_SLOW_LANE_STORE_EVENT_STORE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/batch_writer.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"
#include "transport/base/clock.h"

namespace tandem::slow_lane {

class EventStore {
 public:
  struct Options {
    // Each commit reaches the disk before it is acknowledged. Without, a power
    // cut may take the last commits, though never a part of one.
    bool full_sync = true;
    // What HasRoom goes by. Batches count as their bytes on the wire.
    size_t max_queued_bytes = size_t{64} << 20;
    // Of events in one transaction: what bounds its time and memory. An item
    // that exceeds them has a transaction of its own.
    size_t max_transaction_bytes = size_t{8} << 20;
    size_t max_transaction_rows = 20'000;
    // For so long Close goes on committing what is queued.
    double close_secs = 1;
    // The write-ahead log is copied into the table's file when it has grown to
    // this. Above four times this, that waits for readers to let go of it.
    size_t checkpoint_bytes = size_t{32} << 20;
    // Degraded: until the next try.
    double retry_secs = 1;
    // An item that waits longer for its commit is a fault that state() names.
    double slow_secs = 5;
    int page_bytes = 8'192;
    // As MigrationWatch, for a file of an older schema version.
    std::function<absl::Status(int64_t rows)> migration_watch = nullptr;
  };

  using AppendDone = absl::AnyInvocable<void(const absl::StatusOr<Appended>&)>;
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  using Change = absl::AnyInvocable<absl::Status(Database&)>;
  // A run has rows up to these numbers, and its proxy has read so many steps,
  // all durable.
  using Listener = absl::AnyInvocable<void(
      const std::string& run_id, const Numbers& last, uint64_t printed_steps)>;

  // Opens or makes the file, brings its schema up to date and starts the
  // thread. Errors: as Database::Open and BringUpToDate.
  static absl::StatusOr<std::unique_ptr<EventStore>> Open(
      const std::string& path, const Options& options);
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;
  ~EventStore();  // Close

  // Called after each commit for each run that got rows or another position,
  // before their `done`.
  // At most once, before the first Append.
  void SetListener(Listener listener);

  // Adds a batch's events to their run. Thread-safe; doesn't wait. Batches of
  // one thread keep their order. `done` gets, once they are durable, what was
  // added; or
  //   kNotFound            there is no such run
  //   kFailedPrecondition  the batch doesn't begin where the last one ended
  //   kInvalidArgument     the batch contradicts itself
  //   kCancelled           the store was closed before; or what it failed of,
  //                        if it was degraded
  // An error leaves nothing of the batch, and all of the others.
  void Append(std::shared_ptr<const v1::EventBatch> batch, AppendDone done);

  // Any other change, such as InsertRun (run_table.h), in order with the
  // batches. It must not begin or end a transaction, nor touch events. If it
  // returns an error, what it changed is undone, and `done` gets that error;
  // OK means durable. After a storage failure it runs again, from the start: it
  // must not consume what it captured. Thread-safe; doesn't wait.
  void Post(Change change, Done done);

  // Removes a run and its events: at once for all readers, the rows
  // little by little when there is nothing else to do, also across restarts.
  // `done`: kNotFound, or OK once no reader can find it any more. Thread-safe;
  // doesn't wait.
  void DeleteRun(const std::string& run_id, Done done);

  // Fewer than max_queued_bytes wait to be durable. A call that
  // appends for a client asks before it reads more. Thread-safe.
  bool HasRoom() const;
  size_t queued_bytes() const;

  // How long the oldest item that is not durable yet has been queued, in
  // seconds; 0 without one. Thread-safe.
  double oldest_queued_secs() const;

  // OK, or what keeps the store from committing, or from committing in time, in
  // words for people. Thread-safe.
  absl::Status state() const;

  // Commits what is queued, for close_secs at most, and closes the file. An
  // item that is not committed is undone and answered with kCancelled, or with
  // the error that prevents its commit. The thread lives on: it alone answers
  // later items, so that no caller is answered within its own call.
  // Idempotent; thread-safe; waits.
  void Close();

 private:
  // What waits for its commit: a batch, or a change.
  struct Item {
    std::shared_ptr<const v1::EventBatch> batch;
    Change change;  // of a null batch
    AppendDone append_done;
    Done done;
    size_t bytes = 0;
    size_t rows = 0;
    int64_t queued_at_ns = 0;
    absl::StatusOr<Appended> result = Appended{};
    // Its result is an error of its own that took the transaction with it: the
    // others are tried again without it.
    bool refused = false;
  };

  EventStore(std::unique_ptr<Database> database, const Options& options);
  void Enqueue(Item item);
  static void Answer(Item& item);
  double OldestQueuedSecs() const;  // with mutex_ held
  bool IsClosing() const;
  // Close was called, and what it allows is over.
  bool MustStop() const;

  // All below: the store's thread.
  void Run();
  // In their order; none: closing, or only leftovers to remove.
  std::vector<Item> TakeItems();
  Item RemoveLeftovers();
  // Until they are durable, or closed; then answers them.
  void CommitPatiently(std::vector<Item>* items);
  // One transaction of all `items`. OK: each has its result, durable if that is
  // OK. Else nothing happened.
  absl::Status CommitAll(std::vector<Item>* items);
  // A user may have removed the write-ahead log, which only this connection
  // has then: what is in it goes into the table's file.
  absl::Status NoticeLostLog();
  // Another process may have written into the file: a store, a shell.
  absl::Status NoticeOthers();
  // Within the transaction. OK: the item has its result, an error of its own
  // being one. Else the transaction has to be rolled back.
  absl::Status ApplyOne(Item* item);
  absl::Status ApplyChange(Item* item);
  void TellListener(const std::vector<Item>& items);
  // From closed_ on, until the destructor.
  void AnswerLate();
  void Checkpoint();

  const Options options_;
  // The store's thread's alone.
  std::unique_ptr<Database> database_;
  BatchWriter writer_;
  int64_t data_version_ = 0;
  int64_t log_pages_ = 0;  // of the write-ahead log, after the last commit
  int64_t checkpointed_at_ = 0;  // log_pages_, then
  int64_t pages_per_checkpoint_ = 0;
  bool leftovers_ = true;  // there may be rows of deleted runs
  absl::Status given_up_;  // closing, and the last try failed of this
  Listener listener_;      // set before the first batch

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::deque<Item> queue_;
  size_t queued_bytes_ = 0;  // of the queue, and of what is being committed
  // The first of the items being committed; empty between transactions.
  std::optional<int64_t> committing_since_ns_;
  absl::Status state_;
  bool closing_ = false;
  Deadline close_deadline_ = Deadline::Infinite();  // once closing_
  bool closed_ = false;
  bool ending_ = false;    // the destructor has begun
  std::deque<Item> late_;  // came after Close
  std::condition_variable closed_wake_;

  std::thread thread_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_STORE_EVENT_STORE_H_
