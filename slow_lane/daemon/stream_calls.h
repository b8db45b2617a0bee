// gRPC's reactors for streams of rows to clients.
//
// Data flow: WatchHub -> a block -> its messages one after the other -> gRPC ->
// WatchHub::Sent.
// Ownership: a call deletes itself after gRPC has finished with it, which is
// after the hub has ended it.

#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "program/grpc/reactor.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"

namespace tandem::slow_lane {

// Returns the key that connects a client to its ControlStream: its metadata key
// watcher-id, or else its connection.
inline std::string ControlKey(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto named = metadata.find("watcher-id");
  return named == metadata.end()
             ? context.peer()
             : std::string(named->second.data(), named->second.size());
}

// Returns the states of a request's status_filter.
inline std::vector<RunState> StatesOf(
    const google::protobuf::RepeatedField<int>& filter) {
  std::vector<RunState> states;
  for (const int state : filter) states.push_back(static_cast<RunState>(state));
  return states;
}

// Writes a stream of `Message`s to a watcher of the hub: each message of a
// block in turn. The hub's thread and gRPC's threads call it.
template <typename Message>
class BlockWriter : public grpc::ServerWriteReactor<Message> {
 protected:
  explicit BlockWriter(WatchHub* hub) : hub_(hub), id_(hub->NewId()) {}

  // `block` owns the `messages`; there is at least one.
  void Write(std::shared_ptr<const void> block,
             std::vector<const Message*> messages) {
    MutexLock lock(&mutex_);
    block_ = std::move(block);
    messages_ = std::move(messages);
    next_ = 0;
    writing_ = true;
    WriteNext();
  }

  // Ends the call after a write in progress.
  void FinishWith(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      if (writing_) {
        end_ = status;
        return;
      }
    }
    this->Finish(ToGrpc(status));
  }

  // Called when the client has disconnected.
  virtual void Gone() { hub_->Remove(id_); }

  WatchHub* const hub_;
  const WatchHub::Id id_;

 private:
  void OnWriteDone(bool ok) final {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mutex_);
      if (ok && next_ < messages_.size() && !end_.has_value()) {
        return WriteNext();
      }
      writing_ = false;
      end = end_;
    }
    // Ended during the write: the hub does not know this call any more.
    if (end.has_value()) return this->Finish(ToGrpc(*end));
    ok ? hub_->Sent(id_) : Gone();
  }
  void OnCancel() final {
    Gone();
    HandOver(this);
  }
  void OnDone() final {
    TakeOver(this);
    // After this lock, all other calls have ended, also for ThreadSanitizer.
    mutex_.Lock();
    mutex_.Unlock();
    delete this;
  }

  // gRPC calls no function of this class from StartWrite.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Message* const message = messages_[next_++];
    grpc::WriteOptions options;
    // The next messages follow at once: gRPC combines them, up to 64 KiB, for
    // one system call. Not for a call's first message: it is sent with the
    // initial metadata, and would never complete.
    if (begun_ && next_ < messages_.size()) options.set_buffer_hint();
    begun_ = true;
    this->StartWrite(message, options);
  }

  Mutex mutex_;
  // The current block.
  std::shared_ptr<const void> block_ ABSL_GUARDED_BY(mutex_);
  std::vector<const Message*> messages_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;  // a write has begun
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// StreamRunSteps, StreamRunEpisodes, StreamEvents: `Message` is RunStep,
// RunEpisode or EventBatch.
template <typename Message>
class EventStream final : public BlockWriter<Message>, public EventSink {
 public:
  EventStream(WatchHub::Watch watch, WatchHub* hub, RunSupervisor* runs)
      : BlockWriter<Message>(hub) {
    const std::string run_id = watch.run_id;
    runs->Find(run_id,
               [this, hub, id = this->id_, gone = gone_,
                watch = std::move(watch)](absl::StatusOr<bool> ended) mutable {
                 if (!ended.ok()) return this->FinishWith(ended.status());
                 hub->Add(id, std::move(watch), *ended, this);
                 // From here on the hub may end the call and so delete this
                 // object. relaxed: Gone's Remove is posted after the Add; or
                 // before it, and then the hub's own lock shows the earlier
                 // store.
                 if (gone->load(std::memory_order_relaxed)) hub->Remove(id);
               });
  }

  void Send(std::shared_ptr<const v1::EventBatch> block) override {
    std::vector<const Message*> messages;
    if constexpr (std::is_same_v<Message, gymgui::trainer::RunStep>) {
      for (const auto& step : block->steps()) messages.push_back(&step);
    } else if constexpr (std::is_same_v<Message, gymgui::trainer::RunEpisode>) {
      for (const auto& episode : block->episodes()) {
        messages.push_back(&episode);
      }
    } else {
      messages.push_back(block.get());
    }
    this->Write(std::move(block), std::move(messages));
  }

  void End(const absl::Status& status) override { this->FinishWith(status); }

 private:
  void Gone() override {
    // relaxed: as at its load.
    gone_->store(true, std::memory_order_relaxed);
    BlockWriter<Message>::Gone();
  }

  const std::shared_ptr<std::atomic<bool>> gone_ =
      std::make_shared<std::atomic<bool>>(false);
};

// WatchRuns: the current state of each run, or each change since a number; then
// new changes.
class UpdateStream final : public BlockWriter<gymgui::trainer::RunRecord>,
                           public UpdateSink {
 public:
  UpdateStream(const gymgui::trainer::WatchRunsRequest& request, WatchHub* hub)
      : BlockWriter(hub), states_(StatesOf(request.status_filter())) {
    hub->AddUpdates(id_, request.since_seq(), this);
  }

  void Send(std::vector<RunRow> runs) override {
    auto kept = std::make_shared<std::vector<gymgui::trainer::RunRecord>>();
    for (const RunRow& row : runs) {
      if (states_.empty() || std::find(states_.begin(), states_.end(),
                                       row.status) != states_.end()) {
        kept->push_back(ToRecord(row));
      }
    }
    if (kept->empty()) return hub_->Sent(id_);
    std::vector<const gymgui::trainer::RunRecord*> messages;
    for (const gymgui::trainer::RunRecord& record : *kept)
      messages.push_back(&record);
    Write(std::move(kept), std::move(messages));
  }

  void End(const absl::Status& status) override { FinishWith(status); }

 private:
  const std::vector<RunState> states_;
};

}  // namespace tandem::slow_lane
