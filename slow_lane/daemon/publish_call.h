// PublishCall: PublishRunSteps and PublishRunEpisodes.
//
// Data flow: a worker's messages -> batches -> EventStore -> durable -> the
// call's one answer: the number of new and of duplicate events.
// Ownership: deletes itself after gRPC has finished with it.
//
// While one batch is being committed, the next one grows up to kBatchBytes.
// Then the call reads no more until the store has answered. The supervisor
// admits each batch first, so the call ends as soon as its run has ended.

#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "program/grpc/reactor.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/runs/limits.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

template <typename Message>
class PublishCall final : public grpc::ServerReadReactor<Message> {
 public:
  static constexpr size_t kBatchBytes = size_t{256} << 10;

  // `session_token`: from the call's metadata, empty for none.
  PublishCall(std::string session_token,
              gymgui::trainer::PublishTelemetryResponse* response,
              RunSupervisor* runs, EventStore* store)
      : session_token_(std::move(session_token)),
        response_(response),
        runs_(runs),
        store_(store) {
    this->StartRead(&message_);
  }

 private:
  static constexpr Stream kStream =
      std::is_same_v<Message, gymgui::trainer::RunStep> ? Stream::kSteps
                                                        : Stream::kEpisodes;

  void OnReadDone(bool ok) override {
    TakeTurn([this, ok]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      reading_ = false;
      if (finished_) return;
      if (!ok) {
        ended_ = true;
      } else if (const absl::Status valid = Check(); !valid.ok()) {
        failed_.Update(valid);
      } else {
        Take();
      }
    });
  }
  void OnDone() override { delete this; }

  // Makes a change with mutex_ held, then begins the next read or ends the
  // call. After the call's end no member is used.
  template <typename Change>
  void TakeTurn(Change change) {
    absl::Status failed;
    {
      MutexLock lock(&mutex_);
      change();
      if (finished_) return;
      const bool idle = on_their_way_ == 0;
      finished_ = idle && (ended_ || !failed_.ok());
      if (!finished_) {
        if (reading_ || ended_ || !failed_.ok()) return;
        if (!idle && (batch_bytes_ >= kBatchBytes || !store_->HasRoom())) {
          return;  // the store's answer continues the read
        }
        reading_ = true;
        this->StartRead(&message_);
        return;
      }
      failed = failed_;
    }
    // gRPC ends a read in progress. Messages sent before the client's end or
    // death are kept.
    this->Finish(ToGrpc(failed));
  }

  absl::Status Check() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (message_.run_id().empty()) {
      return absl::InvalidArgumentError(
          "run_id: expected that of a run, found it empty");
    }
    if (!run_id_.empty() && message_.run_id() != run_id_) {
      return absl::InvalidArgumentError(
          absl::StrCat("run_id: expected '", run_id_,
                       "', as in the call's first message, found '",
                       message_.run_id(), "'; one call for each run"));
    }
    if (message_.ByteSizeLong() > size_t{kMaxEventBytes}) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected an event of at most ", kMaxEventBytes,
                       " bytes, found ", message_.ByteSizeLong(),
                       ": a watcher could not get it; publish it in parts, or "
                       "a path to it"));
    }
    return absl::OkStatus();
  }

  // Adds the message to the batch, and appends the batch if none is in
  // progress.
  void Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    run_id_ = message_.run_id();
    // The store numbers events per worker, so a batch has one worker.
    if (batch_ != nullptr && batch_->worker_id() != message_.worker_id()) {
      Append();
    }
    if (batch_ == nullptr) {
      batch_ = std::make_shared<v1::EventBatch>();
      batch_->set_run_id(run_id_);
      batch_->set_worker_id(message_.worker_id());
    }
    message_.clear_run_id();
    batch_bytes_ += message_.ByteSizeLong();
    if constexpr (kStream == Stream::kSteps) {
      batch_->add_steps()->Swap(&message_);
    } else {
      batch_->add_episodes()->Swap(&message_);
    }
    if (on_their_way_ == 0) Append();
  }

  // Appends the batch if the supervisor admits it; the run may have ended. The
  // append happens on the supervisor's thread, so the batch is durable before a
  // later end of the run.
  void Append() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++on_their_way_;
    batch_bytes_ = 0;
    runs_->Admit(
        run_id_, session_token_,
        [this, batch = std::exchange(batch_, nullptr)](const absl::Status& s) {
          if (!s.ok()) return Answered(s);
          store_->Append(batch, [this](const absl::StatusOr<Appended>& added) {
            Answered(added);
          });
        });
  }

  // Called without mutex_, on the supervisor's thread or the store's.
  void Answered(const absl::StatusOr<Appended>& appended) {
    TakeTurn([this, &appended]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      --on_their_way_;
      if (appended.ok()) {
        response_->set_accepted(response_->accepted() +
                                appended->added[kStream]);
        response_->set_dropped(response_->dropped() +
                               appended->duplicate[kStream]);
      } else {
        failed_.Update(appended.status());
      }
      if (batch_ != nullptr && on_their_way_ == 0 && failed_.ok()) Append();
    });
  }

  const std::string session_token_;
  gymgui::trainer::PublishTelemetryResponse* const response_;
  RunSupervisor* const runs_;
  EventStore* const store_;
  Message message_;  // the message in the read

  Mutex mutex_;
  std::string run_id_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<v1::EventBatch> batch_ ABSL_GUARDED_BY(mutex_);
  size_t batch_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int on_their_way_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  // The client has ended or died.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);  // the first error
};

}  // namespace tandem::slow_lane
