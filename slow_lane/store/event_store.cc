#include "slow_lane/store/event_store.h"

#include <unistd.h>

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "slow_lane/store/run_table.h"
#include "slow_lane/store/schema.h"

namespace tandem::slow_lane {
namespace {

// The time for rows of deleted runs in one transaction. It is no row count,
// because a row may have 16 MiB.
constexpr double kLeftoverSecs = 0.02;
constexpr size_t kLeftoversAtOnce = 4;
// A busy store removes such rows in one of this number of transactions.
constexpr int kTransactionsPerLeftovers = 16;
// The queue's own memory for an item.
constexpr size_t kItemBytes = 512;

size_t RowsOf(const v1::EventBatch& batch) {
  int rows = batch.steps_size() + batch.episodes_size() +
             batch.lifecycle_size() + batch.malformed_size();
  for (const v1::Scalars& event : batch.scalars()) rows += event.names_size();
  return static_cast<size_t>(rows);
}

absl::Status Closed() {
  return absl::CancelledError(
      "expected an open store, found it closed: the daemon is ending; send "
      "the same again once it is back");
}

// With this journal, readers and the writer do not wait for each other.
absl::Status UseWriteAheadLog(Database& database) {
  std::string mode;
  const absl::Status status = database.ForEachRow(
      "PRAGMA journal_mode = WAL", [&](const Statement& row) {
        mode = std::string(row.Text(0));
        return true;
      });
  TANDEM_RETURN_IF_ERROR(status);
  if (mode != "wal") {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a file system that can map files for sqlite's write-ahead "
        "log, found journal mode '",
        mode, "'; put the data folder on a local disk: ", database.path()));
  }
  return absl::OkStatus();
}

// SQLite calls it after a commit, with the log's length.
int TakeLogLength(void* pages, sqlite3* /*connection*/, const char* /*name*/,
                  int length) {
  *static_cast<int64_t*>(pages) = length;
  return SQLITE_OK;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventStore>> EventStore::Open(
    const std::string& path, const Options& options) {
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<Database> database,
      Database::Open(path, {.page_bytes = options.page_bytes}));
  // Checkpoint() copies the log into the file.
  TANDEM_RETURN_IF_ERROR(database->Execute("PRAGMA wal_autocheckpoint = 0"));
  TANDEM_RETURN_IF_ERROR(MakeOrCheckSchema(*database));
  TANDEM_RETURN_IF_ERROR(UseWriteAheadLog(*database));
  // A transaction's pages stay in memory until its commit. A log that has
  // exceeded its limit shrinks again.
  TANDEM_RETURN_IF_ERROR(database->Execute(absl::StrCat(
      "PRAGMA synchronous = ", options.full_sync ? "FULL" : "NORMAL",
      "; PRAGMA cache_size = -65536; PRAGMA journal_size_limit = ",
      4 * options.checkpoint_bytes)));
  TANDEM_ASSIGN_OR_RETURN(const int64_t page_bytes,
                          database->ReadInt("PRAGMA page_size"));
  std::unique_ptr<EventStore> store(
      new EventStore(std::move(database), options));
  store->pages_per_checkpoint_ =
      static_cast<int64_t>(options.checkpoint_bytes) / page_bytes;
  store->thread_ = std::thread([raw = store.get()] { raw->Run(); });
  return store;
}

EventStore::EventStore(std::unique_ptr<Database> database,
                       const Options& options)
    : options_(options),
      database_(std::move(database)),
      writer_(database_.get()) {
  sqlite3_wal_hook(database_->connection(), &TakeLogLength, &log_pages_);
}

EventStore::~EventStore() {
  Close();
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void EventStore::SetListener(Listener listener) {
  MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

void EventStore::Append(std::shared_ptr<const v1::EventBatch> batch,
                        AppendDone done) {
  Item item;
  item.bytes = kItemBytes + batch->ByteSizeLong();
  item.rows = RowsOf(*batch);
  item.batch = std::move(batch);
  item.done = std::move(done);
  Enqueue(std::move(item));
}

void EventStore::Post(Change change, Done done) {
  Item item;
  item.bytes = kItemBytes;
  item.change = std::move(change);
  item.done =
      [done = std::move(done)](const absl::StatusOr<Appended>& result) mutable {
        done(result.status());
      };
  Enqueue(std::move(item));
}

void EventStore::DeleteRun(const std::string& run_id, Done done) {
  Post(
      [this, run_id](Database& database) {
        writer_.Forget();
        leftovers_ = true;
        return DetachRun(database, run_id);
      },
      std::move(done));
}

void EventStore::Enqueue(Item item) {
  item.queued_at_ns = MonotonicNanos();
  MutexLock lock(&mutex_);
  if (closing_) {
    item.result = Closed();
    late_.push_back(std::move(item));
  } else {
    queued_bytes_ += item.bytes;
    queue_.push_back(std::move(item));
  }
  wake_.Signal();
}

bool EventStore::HasRoom() const {
  return queued_bytes() < options_.max_queued_bytes;
}

size_t EventStore::queued_bytes() const {
  MutexLock lock(&mutex_);
  return queued_bytes_;
}

double EventStore::oldest_queued_secs() const {
  MutexLock lock(&mutex_);
  return OldestQueuedSecs();
}

double EventStore::OldestQueuedSecs() const {
  if (!committing_since_ns_.has_value() && queue_.empty()) return 0;
  const int64_t oldest = committing_since_ns_.has_value()
                             ? *committing_since_ns_
                             : queue_.front().queued_at_ns;
  return static_cast<double>(MonotonicNanos() - oldest) / 1e9;
}

absl::Status EventStore::state() const {
  MutexLock lock(&mutex_);
  if (closing_) return Closed();
  const double waiting_secs = OldestQueuedSecs();
  if (!state_.ok() || waiting_secs < options_.slow_secs) return state_;
  return absl::UnavailableError(absl::StrFormat(
      "expected each event on the disk within %g s, found one that has waited "
      "for %.0f s, with %d bytes queued; the disk is slow, or the machine is "
      "out of memory or processor time: see iostat, vmstat, top",
      options_.slow_secs, waiting_secs, queued_bytes_));
}

bool EventStore::IsClosing() const {
  MutexLock lock(&mutex_);
  return closing_;
}

bool EventStore::MustStop() const {
  MutexLock lock(&mutex_);
  return closing_ && close_deadline_.PassedAt(MonotonicNanos());
}

void EventStore::Close() {
  MutexLock lock(&mutex_);
  if (!closing_) close_deadline_ = Deadline::After(options_.close_secs);
  closing_ = true;
  wake_.Signal();
  while (!closed_) closed_wake_.Wait(&mutex_);
}

void EventStore::Run() {
  int transactions = 0;
  while (true) {
    std::vector<Item> items = TakeItems();
    if (items.empty() && !leftovers_) break;
    if (leftovers_ &&
        (items.empty() || ++transactions % kTransactionsPerLeftovers == 0)) {
      items.push_back(RemoveLeftovers());
    }
    CommitPatiently(&items);
    Checkpoint();
  }
  database_ = nullptr;  // the last close of a connection empties the log
  AnswerLate();
}

void EventStore::AnswerLate() {
  mutex_.Lock();
  closed_ = true;
  closed_wake_.SignalAll();
  while (true) {
    while (!ending_ && late_.empty()) wake_.Wait(&mutex_);
    if (late_.empty()) break;
    std::deque<Item> late;
    late.swap(late_);
    mutex_.Unlock();
    for (Item& item : late) item.done(item.result);
    mutex_.Lock();
  }
  mutex_.Unlock();
}

std::vector<EventStore::Item> EventStore::TakeItems() {
  MutexLock lock(&mutex_);
  if (closing_) leftovers_ = false;  // left for the next start
  if (!leftovers_) {
    while (!closing_ && queue_.empty()) wake_.Wait(&mutex_);
  }
  std::vector<Item> items;
  size_t bytes = 0;
  size_t rows = 0;
  if (!queue_.empty()) committing_since_ns_ = queue_.front().queued_at_ns;
  while (!queue_.empty()) {
    bytes += queue_.front().bytes;
    rows += queue_.front().rows;
    if (!items.empty() && (bytes > options_.max_transaction_bytes ||
                           rows > options_.max_transaction_rows)) {
      break;
    }
    items.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return items;
}

EventStore::Item EventStore::RemoveLeftovers() {
  Item item;
  item.change = [this](Database& database) {
    const Deadline deadline = Deadline::After(kLeftoverSecs);
    absl::StatusOr<size_t> removed;
    do {
      removed = RemoveLeftoverRows(database, kLeftoversAtOnce);
      leftovers_ = removed.ok() && *removed > 0;
    } while (leftovers_ && !deadline.PassedAt(MonotonicNanos()));
    return removed.status();
  };
  item.done = [](const absl::StatusOr<Appended>&) {};
  return item;
}

void EventStore::CommitPatiently(std::vector<Item>* items) {
  while (true) {
    const bool last_try = IsClosing();
    // After a failed commit, later batches must fail, too. Otherwise the failed
    // ones would count as repeats when they are sent again.
    absl::Status status = given_up_.ok() ? CommitAll(items) : given_up_;
    MutexLock lock(&mutex_);
    state_ = status;
    if (status.ok()) break;
    if (last_try) {
      given_up_ = status;
      for (Item& item : *items) item.result = status;
      break;
    }
    const Deadline retry = Deadline::After(options_.retry_secs);
    while (!closing_ && !retry.PassedAt(MonotonicNanos())) {
      wake_.WaitUntil(&mutex_, retry);
    }
  }
  {
    // Releases the memory first: an answered caller may send more.
    MutexLock lock(&mutex_);
    for (const Item& item : *items) queued_bytes_ -= item.bytes;
    committing_since_ns_.reset();
  }
  TellListener(*items);
  for (Item& item : *items) item.done(item.result);
}

absl::Status EventStore::CommitAll(std::vector<Item>* items) {
  while (true) {
    bool refused = false;
    absl::Status status = NoticeLostLog();
    if (status.ok()) status = database_->Begin();
    if (status.ok()) status = NoticeOthers();
    for (Item& item : *items) {
      if (status.ok() && MustStop()) status = Closed();
      if (!status.ok()) break;
      if (item.refused) continue;
      status = ApplyOne(&item);
      refused = item.refused;
    }
    if (status.ok()) status = database_->Commit();
    if (status.ok()) return status;
    database_->Rollback();
    writer_.Forget();
    if (!refused) return status;
  }
}

absl::Status EventStore::NoticeLostLog() {
  const char* const log = sqlite3_filename_wal(
      sqlite3_db_filename(database_->connection(), "main"));
  // The first commit makes the log.
  if (log_pages_ == 0 || access(log, F_OK) == 0) return absl::OkStatus();
  sqlite3_wal_checkpoint_v2(database_->connection(), nullptr,
                            SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  return absl::UnavailableError(absl::StrCat(
      "expected sqlite's write-ahead log at ", log,
      ", found it moved or removed; what was in it is in the table's file now; "
      "next: start the daemon again"));
}

absl::Status EventStore::NoticeOthers() {
  int moved = 0;
  sqlite3_file_control(database_->connection(), "main", SQLITE_FCNTL_HAS_MOVED,
                       &moved);
  if (moved != 0) {
    return absl::UnavailableError(absl::StrCat(
        "expected the table at ",
        sqlite3_db_filename(database_->connection(), "main"),
        ", where it was opened, found it moved or removed; put it back"));
  }
  TANDEM_ASSIGN_OR_RETURN(const int64_t version,
                          database_->ReadInt("PRAGMA data_version"));
  if (version != data_version_) writer_.Forget();
  data_version_ = version;
  return absl::OkStatus();
}

absl::Status EventStore::ApplyOne(Item* item) {
  if (item->change != nullptr) return ApplyChange(item);
  const int64_t before = sqlite3_total_changes64(database_->connection());
  item->result = writer_.Write(*item->batch);
  absl::Status status = item->result.status();
  if (status.ok() || IsStorageFailure(status)) return status;
  if (sqlite3_total_changes64(database_->connection()) == before) return {};
  // A part of the batch was written. This is very rare, so there is no
  // savepoint for each batch, which would copy each changed page.
  item->refused = true;
  return status;
}

absl::Status EventStore::ApplyChange(Item* item) {
  TANDEM_RETURN_IF_ERROR(database_->Run("SAVEPOINT change"));
  const absl::Status status = item->change(*database_);
  if (IsStorageFailure(status)) return status;
  item->result = status.ok() ? absl::StatusOr<Appended>(Appended{}) : status;
  if (!status.ok()) {
    TANDEM_RETURN_IF_ERROR(database_->Run("ROLLBACK TO change"));
  }
  return database_->Run("RELEASE change");
}

void EventStore::TellListener(const std::vector<Item>& items) {
  absl::flat_hash_map<absl::string_view, const Item*> newest;
  for (const Item& item : items) {
    if (item.batch == nullptr || !item.result.ok()) continue;
    if (item.result->added == Numbers{} && !item.batch->has_end()) continue;
    newest[item.batch->run_id()] = &item;
  }
  // listener_ is set before the first batch; the queue's lock orders the two.
  // Without a batch, another thread may be setting it, so `newest` comes first.
  if (newest.empty() || listener_ == nullptr) return;
  for (const auto& [run_id, item] : newest) {
    listener_(item->batch->run_id(), item->result->last,
              item->result->printed_steps);
  }
}

void EventStore::Checkpoint() {
  // The log was restarted.
  if (log_pages_ < checkpointed_at_) checkpointed_at_ = 0;
  if (log_pages_ - checkpointed_at_ < pages_per_checkpoint_) return;
  checkpointed_at_ = log_pages_;
  // Errors are ignored: the log has all data, and a later checkpoint tries
  // again.
  if (log_pages_ < 4 * pages_per_checkpoint_) {
    sqlite3_wal_checkpoint_v2(database_->connection(), nullptr,
                              SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    return;
  }
  // There was no moment without a reader. This call waits for the present
  // readers; new ones read from the table's file.
  constexpr int kBusyTimeoutMs = 100;
  sqlite3_busy_timeout(database_->connection(), kBusyTimeoutMs);
  sqlite3_wal_checkpoint_v2(database_->connection(), nullptr,
                            SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
  sqlite3_busy_timeout(database_->connection(),
                       Database::Options{}.busy_timeout_ms);
}

}  // namespace tandem::slow_lane
