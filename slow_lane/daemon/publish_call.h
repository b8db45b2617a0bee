// PublishCall: PublishRunSteps and PublishRunEpisodes.
//
// Data flow: a worker's messages -> batches -> EventStore -> durable -> the
// call's one answer: how many are in the table, how many were known already.
// Ownership: deletes itself once gRPC is done with it.
//
//   return new PublishCall<RunStep>(context, response, runs, store);
//
// While a batch is being committed the next one grows, up to kBatchBytes; then
// reading stops until the store has answered.

#ifndef TANDEM_SLOW_LANE_DAEMON_PUBLISH_CALL_H_
#define TANDEM_SLOW_LANE_DAEMON_PUBLISH_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/grpc_status.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

template <typename Message>
class PublishCall final : public grpc::ServerReadReactor<Message> {
 public:
  static constexpr size_t kBatchBytes = size_t{256} << 10;

  // `session_token`: of the call's metadata, empty for none.
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
    if (!ok) return Ended();
    if (message_.run_id().empty()) {
      return Fail(absl::InvalidArgumentError(
          "run_id: expected that of a run, found it empty"));
    }
    if (run_id_.empty()) {
      run_id_ = message_.run_id();
      runs_->Admit(run_id_, session_token_, [this](const absl::Status& status) {
        status.ok() ? Take() : Fail(status);
      });
    } else if (message_.run_id() != run_id_) {
      Fail(absl::InvalidArgumentError(
          absl::StrCat("run_id: expected '", run_id_,
                       "', as in the call's first message, found '",
                       message_.run_id(), "'; one call for each run")));
    } else {
      Take();
    }
  }

  // Adds the message to the batch; appends that if none is on its way.
  void Take() {
    bool read_on = false;
    {
      const std::lock_guard lock(mutex_);
      // The store numbers per worker: a batch is one worker's.
      if (batch_ != nullptr && batch_->worker_id() != message_.worker_id()) {
        Append();
      }
      if (batch_ == nullptr) {
        batch_ = std::make_shared<v1::EventBatch>();
        batch_->set_run_id(run_id_);
        batch_->set_worker_id(message_.worker_id());
        batch_bytes_ = 0;
      }
      message_.clear_run_id();
      batch_bytes_ += message_.ByteSizeLong();
      if constexpr (kStream == Stream::kSteps) {
        batch_->add_steps()->Swap(&message_);
      } else {
        batch_->add_episodes()->Swap(&message_);
      }
      if (on_their_way_ == 0) Append();
      reading_ = read_on = batch_bytes_ < kBatchBytes && store_->HasRoom();
    }
    if (read_on) this->StartRead(&message_);
  }

  // With mutex_ held.
  void Append() {
    ++on_their_way_;
    batch_bytes_ = 0;
    store_->Append(std::move(batch_),
                   [this](const absl::StatusOr<Appended>& appended) {
                     Committed(appended);
                   });
    batch_ = nullptr;
  }

  // On the store's thread.
  void Committed(const absl::StatusOr<Appended>& appended) {
    bool read_on = false;
    std::optional<absl::Status> finish;
    {
      const std::lock_guard lock(mutex_);
      --on_their_way_;
      if (appended.ok()) {
        response_->set_accepted(response_->accepted() +
                                appended->added[kStream]);
        response_->set_dropped(response_->dropped() +
                               appended->duplicate[kStream]);
      } else if (!failed_.has_value()) {
        failed_ = appended.status();
      }
      if (batch_ != nullptr && on_their_way_ == 0) Append();
      if (!reading_ && !ended_ && !failed_.has_value()) {
        reading_ = read_on = true;
      }
      finish = WhenOver();
    }
    if (finish.has_value()) return this->Finish(ToGrpc(*finish));
    if (read_on) this->StartRead(&message_);
  }

  // The client has sent all, or is gone: what it sent is kept in either case.
  void Ended() {
    std::optional<absl::Status> finish;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      reading_ = false;
      finish = WhenOver();
    }
    if (finish.has_value()) this->Finish(ToGrpc(*finish));
  }

  void Fail(const absl::Status& status) {
    std::optional<absl::Status> finish;
    {
      const std::lock_guard lock(mutex_);
      failed_ = status;
      reading_ = false;
      finish = WhenOver();
    }
    if (finish.has_value()) this->Finish(ToGrpc(*finish));
  }

  // With mutex_ held: how the call ends, once it does. Nothing of it is used
  // afterwards.
  std::optional<absl::Status> WhenOver() {
    if (finished_ || on_their_way_ > 0 || reading_) return std::nullopt;
    if (!failed_.has_value() && !ended_) return std::nullopt;
    finished_ = true;
    return failed_.value_or(absl::OkStatus());
  }

  void OnDone() override { delete this; }

  const std::string session_token_;
  gymgui::trainer::PublishTelemetryResponse* const response_;
  RunSupervisor* const runs_;
  EventStore* const store_;
  Message message_;  // the reader's
  std::string run_id_;

  std::mutex mutex_;  // guards what follows
  std::shared_ptr<v1::EventBatch> batch_;
  size_t batch_bytes_ = 0;
  int on_their_way_ = 0;
  bool reading_ = true;  // a read is under way, or its message being taken
  bool ended_ = false;
  bool finished_ = false;
  std::optional<absl::Status> failed_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_PUBLISH_CALL_H_
