#include "slow_lane/daemon/proxy_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "slow_lane/daemon/reactor.h"
#include "slow_lane/wire/limits.h"

namespace tandem::slow_lane {

// gRPC's half: lives until OnDone.
class ProxyCall::Adapter final : public ProxyCall::Reactor {
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

ProxyCall::Reactor* ProxyCall::Start(RunSupervisor* runs, EventStore* store,
                                     WatchHub* hub) {
  const auto call = std::shared_ptr<ProxyCall>(new ProxyCall(runs, store, hub));
  const std::lock_guard lock(call->mutex_);
  call->reactor_ = new Adapter(call);
  call->reactor_->StartRead(&call->message_);
  return call->reactor_;
}

void ProxyCall::Recorded() {
  const std::lock_guard lock(mutex_);
  recorded_ = true;
  WriteNext();
}

void ProxyCall::Refuse(const std::string& reason) {
  Fail(absl::InvalidArgumentError(reason));
}

void ProxyCall::Fail(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  FailLocked(status);
}

void ProxyCall::FailLocked(const absl::Status& status) {
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

void ProxyCall::OnRead(bool ok) {
  const std::lock_guard lock(mutex_);
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
      return Hello(message_.hello());  // reads on when it is welcome
    case v1::FromProxy::kWorkerStarted:
      runs_->WorkerStarted(run_id_, message_.worker_started());
      break;
    case v1::FromProxy::kBatch:
      Append(message_.mutable_batch());
      break;
    case v1::FromProxy::kBeat:
      runs_->ProxyHeartbeat(run_id_);
      break;
    case v1::FromProxy::kWorkerEnded:
      runs_->WorkerEnded(run_id_, message_.worker_ended());
      break;
    case v1::FromProxy::kOutputProblem:
      runs_->OutputFailed(run_id_, message_.output_problem());
      break;
    case v1::FromProxy::MESSAGE_NOT_SET:
      break;  // a newer proxy's: it is ours to ignore
  }
  ReadOn();
}

void ProxyCall::Hello(const v1::Hello& hello) {
  if (!run_id_.empty()) {
    return FailLocked(
        absl::InvalidArgumentError("expected one hello, found a second one"));
  }
  run_id_ = hello.run_id();
  runs_->Link(hello, shared_from_this(),
              [self = shared_from_this()](const absl::Status& linked) {
                if (!linked.ok()) return self->Fail(linked);
                // Behind whatever an earlier link of the run has appended.
                self->store_->Post(
                    [](Database&) { return absl::OkStatus(); },
                    [self](const absl::Status& committed) {
                      if (!committed.ok()) return self->Fail(committed);
                      self->hub_->Read([self](EventReader& reader) {
                        self->Welcome(reader);
                      });
                    });
              });
}

void ProxyCall::Welcome(EventReader& reader) {
  const absl::StatusOr<RunProgress> progress = reader.Progress(run_id_);
  if (!progress.ok()) return Fail(progress.status());
  // An earlier daemon committed them.
  runs_->Committed(run_id_, progress->last, progress->position.steps());
  const std::lock_guard lock(mutex_);
  welcome_ = progress->position;
  WriteNext();
  ReadOn();
}

void ProxyCall::Append(v1::EventBatch* batch) {
  if (batch->run_id() != run_id_) {
    return FailLocked(absl::InvalidArgumentError(
        absl::StrCat("expected batches of run '", run_id_, "', found one of '",
                     batch->run_id(), "'")));
  }
  auto owned = std::make_shared<v1::EventBatch>();
  owned->Swap(batch);
  ++on_their_way_;
  store_->Append(owned, [self = shared_from_this(), end = owned->end()](
                            const absl::StatusOr<Appended>& appended) {
    const std::lock_guard lock(self->mutex_);
    --self->on_their_way_;
    if (!appended.ok()) return self->FailLocked(appended.status());
    self->durable_ = end;
    self->WriteNext();
    self->ReadOn();
  });
}

void ProxyCall::ReadOn() {
  if (reactor_ == nullptr || reading_ || closing_ || run_id_.empty()) return;
  if (on_their_way_ > 0 &&
      (on_their_way_ >= kLinkWindow || !store_->HasRoom())) {
    return;  // the store's answer reads on
  }
  reading_ = true;
  reactor_->StartRead(&message_);
}

void ProxyCall::WriteNext() {
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

void ProxyCall::OnWritten(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  if (ok) return WriteNext();
  closing_ = true;
  FinishIfOver();
}

void ProxyCall::FinishIfOver() {
  if (reactor_ == nullptr || finished_ || !closing_ || writing_) return;
  // A read may be under way: gRPC ends it.
  finished_ = true;
  reactor_->Finish(ToGrpc(end_));
}

void ProxyCall::OnDone() {
  const std::lock_guard lock(mutex_);
  reactor_ = nullptr;
  closing_ = true;
  if (!run_id_.empty()) runs_->Unlink(run_id_, this);
}

}  // namespace tandem::slow_lane
