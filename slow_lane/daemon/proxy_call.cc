#include "slow_lane/daemon/proxy_call.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "program/grpc/reactor.h"
#include "slow_lane/runs/limits.h"

namespace tandem::slow_lane {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::FromProxy, v1::ToProxy>;

class ProxyCall final : public ProxyLink,
                        public std::enable_shared_from_this<ProxyCall> {
 public:
  ProxyCall(RunSupervisor* runs, EventStore* store, WatchHub* hub)
      : runs_(runs), store_(store), hub_(hub) {}

  // Call it once.
  Reactor* Start();

  void Recorded() override {
    MutexLock lock(&mutex_);
    recorded_ = true;
    WriteNext();
  }

  void Refuse(const std::string& reason) override {
    Fail(absl::InvalidArgumentError(reason));
  }

  // Called by gRPC.

  void OnRead(bool ok) {
    MutexLock lock(&mutex_);
    reading_ = false;
    if (!ok) {
      closing_ = true;
      return FinishIfOver();
    }
    if (closing_) return FinishIfOver();
    if (run_id_.empty() && !message_.has_hello()) {
      return FailLocked(absl::InvalidArgumentError(
          "expected hello first, found another message"));
    }
    switch (message_.message_case()) {
      case v1::FromProxy::kHello:
        return Hello(message_.hello());  // Welcome continues the reads
      case v1::FromProxy::kBatch:
        Append(message_.mutable_batch());
        break;
      default:
        runs_->Handle(run_id_, message_);
    }
    ReadOn();
  }

  void OnWritten(bool ok) {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) return WriteNext();
    closing_ = true;
    FinishIfOver();
  }

  void OnDone() {
    MutexLock lock(&mutex_);
    reactor_ = nullptr;
    closing_ = true;
    if (!run_id_.empty()) runs_->Unlink(run_id_, this);
  }

 private:
  // Refuses, or ends the call with the error.
  void Fail(const absl::Status& status) {
    MutexLock lock(&mutex_);
    FailLocked(status);
  }

  // Called on the hub's thread.
  void Welcome(const std::string& run_id, EventReader& reader) {
    const absl::StatusOr<RunProgress> progress = reader.Progress(run_id);
    if (!progress.ok()) return Fail(progress.status());
    // Rows that an earlier daemon has committed.
    runs_->Committed(run_id, progress->last, progress->position.steps());
    MutexLock lock(&mutex_);
    welcome_ = progress->position;
    WriteNext();
    ReadOn();
  }

  void FailLocked(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!closing_) {
      if (absl::IsNotFound(status) || absl::IsUnauthenticated(status) ||
          absl::IsInvalidArgument(status)) {
        refused_ = std::string(status.message());
      } else {
        end_ = status;
      }
      closing_ = true;
    }
    WriteNext();
  }

  void Hello(const v1::Hello& hello) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!run_id_.empty()) {
      return FailLocked(
          absl::InvalidArgumentError("expected one hello, found a second one"));
    }
    run_id_ = hello.run_id();
    runs_->Link(hello, shared_from_this(),
                [self = shared_from_this(),
                 run_id = run_id_](const absl::Status& linked) {
                  if (!linked.ok()) return self->Fail(linked);
                  // After the batches of the run's earlier links.
                  self->store_->Post(
                      [](Database&) { return absl::OkStatus(); },
                      [self, run_id](const absl::Status& committed) {
                        if (!committed.ok()) return self->Fail(committed);
                        self->hub_->Read([self, run_id](EventReader& reader) {
                          self->Welcome(run_id, reader);
                        });
                      });
                });
  }

  void Append(v1::EventBatch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (batch->run_id() != run_id_) {
      return FailLocked(absl::InvalidArgumentError(
          absl::StrCat("expected batches of run '", run_id_,
                       "', found one of '", batch->run_id(), "'")));
    }
    auto owned = std::make_shared<v1::EventBatch>();
    owned->Swap(batch);
    ++on_their_way_;
    runs_->WorkerPrinted(
        run_id_,
        std::ranges::any_of(owned->lifecycle(), [](const auto& lifecycle) {
          return lifecycle.event() == "heartbeat";
        }));
    store_->Append(owned, [self = shared_from_this(), end = owned->end()](
                              const absl::StatusOr<Appended>& appended) {
      MutexLock lock(&self->mutex_);
      --self->on_their_way_;
      if (!appended.ok()) return self->FailLocked(appended.status());
      self->durable_ = end;
      self->WriteNext();
      self->ReadOn();
    });
  }

  void ReadOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ == nullptr || reading_ || closing_ || run_id_.empty()) return;
    if (on_their_way_ > 0 &&
        (on_their_way_ >= kLinkWindow || !store_->HasRoom())) {
      return;  // the store's answer continues the reads
    }
    reading_ = true;
    reactor_->StartRead(&message_);
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ == nullptr || finished_ || writing_) return;
    answer_.Clear();
    if (welcome_.has_value()) {
      *answer_.mutable_welcome() = *std::exchange(welcome_, std::nullopt);
    } else if (durable_.has_value()) {
      *answer_.mutable_durable() = *std::exchange(durable_, std::nullopt);
    } else if (std::exchange(recorded_, false)) {
      answer_.set_recorded(true);
    } else if (refused_.has_value()) {
      answer_.set_refused(*std::exchange(refused_, std::nullopt));
    } else {
      return FinishIfOver();
    }
    writing_ = true;
    reactor_->StartWrite(&answer_);
  }

  void FinishIfOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ == nullptr || finished_ || !closing_ || writing_) return;
    // gRPC ends a read in progress.
    finished_ = true;
    reactor_->Finish(ToGrpc(end_));
  }

  RunSupervisor* const runs_;
  EventStore* const store_;
  WatchHub* const hub_;

  Mutex mutex_;
  // Until gRPC has finished with it.
  Reactor* reactor_ ABSL_GUARDED_BY(mutex_) = nullptr;
  v1::FromProxy message_ ABSL_GUARDED_BY(mutex_);  // in the read
  v1::ToProxy answer_ ABSL_GUARDED_BY(mutex_);     // in the write
  std::string run_id_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // No more reads; pending answers are still written.
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int on_their_way_ ABSL_GUARDED_BY(mutex_) = 0;
  // Pending answers, in this order.
  std::optional<v1::Position> welcome_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Position> durable_ ABSL_GUARDED_BY(mutex_);
  bool recorded_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> refused_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // the call's result
};

// gRPC's reactor of the call; lives until OnDone.
class Adapter final : public Reactor {
 public:
  explicit Adapter(std::shared_ptr<ProxyCall> call) : call_(std::move(call)) {
    HandOver(this);
  }

  void OnReadDone(bool ok) override {
    TakeOver(this);
    call_->OnRead(ok);
  }
  void OnWriteDone(bool ok) override {
    TakeOver(this);
    call_->OnWritten(ok);
  }
  void OnDone() override {
    TakeOver(this);
    call_->OnDone();
    delete this;
  }

 private:
  const std::shared_ptr<ProxyCall> call_;
};

Reactor* ProxyCall::Start() {
  MutexLock lock(&mutex_);
  reactor_ = new Adapter(shared_from_this());
  reactor_->StartRead(&message_);
  return reactor_;
}

}  // namespace

Reactor* StartProxyCall(RunSupervisor* runs, EventStore* store, WatchHub* hub) {
  return std::make_shared<ProxyCall>(runs, store, hub)->Start();
}

}  // namespace tandem::slow_lane
