#include "slow_lane/daemon/trainer_service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
// gRPC's generated code: each callback method hides the synchronous one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#pragma GCC diagnostic pop
#include "base/error.h"
#include "program/grpc/reactor.h"
#include "slow_lane/daemon/control_call.h"
#include "slow_lane/daemon/proxy_call.h"
#include "slow_lane/daemon/publish_call.h"
#include "slow_lane/daemon/stream_calls.h"
#include "slow_lane/runs/limits.h"
#include "slow_lane/runs/run_config.h"

namespace tandem::slow_lane {
namespace {

namespace trainer = gymgui::trainer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using trainer::RunEpisode;
using trainer::RunStep;

std::string SessionToken(const CallbackServerContext& context) {
  const auto found = context.client_metadata().find("session-token");
  return found == context.client_metadata().end()
             ? ""
             : std::string(found->second.data(), found->second.size());
}

// Ends a call without a response.
auto FinishCall(ServerUnaryReactor* call) {
  return [call](const absl::Status& status) { call->Finish(ToGrpc(status)); };
}
// Ends a call with a response.
template <typename Response>
auto FinishCall(ServerUnaryReactor* call, Response* response) {
  return [call, response](absl::StatusOr<Response> answer) {
    if (answer.ok()) *response = *std::move(answer);
    call->Finish(ToGrpc(answer.status()));
  };
}

// Returns OK, or the reason why the daemon cannot work, for display.
absl::Status DaemonState(const EventStore& store) {
  if (access(kSocketFile, F_OK) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "expected the socket by which proxies reach this daemon, found it "
        "removed: ",
        kSocketFile,
        " in the data folder; next: start the daemon again, nothing is lost"));
  }
  return store.state();
}

// Selects the events of one stream above `since_seq`, and no other events.
Numbers Since(Stream wanted, uint64_t since_seq) {
  Numbers since;
  for (const Stream stream : kAllStreams) {
    since[stream] = std::numeric_limits<uint64_t>::max();
  }
  since[wanted] = since_seq;
  return since;
}

// Adds the fields of the table; kNotFound: the run was deleted.
absl::Status AddDetails(EventReader& reader, v1::RunDescription* run) {
  const std::string& run_id = run->record().run_id();
  // First, so that no attempt begins behind the progress.
  TANDEM_ASSIGN_OR_RETURN(const std::vector<v1::Attempt> attempts,
                          ReadAttempts(reader.database(), run_id));
  run->mutable_attempts()->Add(attempts.begin(), attempts.end());
  TANDEM_ASSIGN_OR_RETURN(const RunProgress progress, reader.Progress(run_id));
  AddProgress(progress, run);
  TANDEM_ASSIGN_OR_RETURN(const LastReturns returns, reader.Returns(progress));
  if (returns.count > 0) run->set_mean_return(returns.mean);
  run->set_mean_of(returns.count);
  run->set_return_deviation(returns.deviation);
  return absl::OkStatus();
}

class TrainerService final : public trainer::TrainerService::CallbackService {
 public:
  TrainerService(RunSupervisor* runs, WatchHub* hub, EventStore* store,
                 const trainer::HealthCheckResponse& health)
      : runs_(runs), hub_(hub), store_(store), health_(health) {}

  ServerUnaryReactor* SubmitRun(CallbackServerContext* context,
                                const trainer::SubmitRunRequest* request,
                                trainer::SubmitRunResponse* response) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    absl::StatusOr<RunConfig> config =
        ParseSubmittedConfig(request->config_json());
    if (!config.ok()) {
      call->Finish(ToGrpc(config.status()));
      return call;
    }
    runs_->Submit(request->run_id(), *std::move(config),
                  FinishCall(call, response));
    return call;
  }

  ServerUnaryReactor* CancelRun(
      CallbackServerContext* context, const trainer::CancelRunRequest* request,
      trainer::CancelRunResponse* /*response*/) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    runs_->Cancel(request->run_id(), FinishCall(call));
    return call;
  }

  ServerUnaryReactor* ListRuns(CallbackServerContext* context,
                               const trainer::ListRunsRequest* request,
                               trainer::ListRunsResponse* response) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    runs_->List(StatesOf(request->status_filter()), FinishCall(call, response));
    return call;
  }

  grpc::ServerWriteReactor<trainer::RunRecord>* WatchRuns(
      CallbackServerContext* /*context*/,
      const trainer::WatchRunsRequest* request) override {
    return new UpdateStream(*request, hub_);
  }

  ServerUnaryReactor* RegisterWorker(
      CallbackServerContext* context,
      const trainer::RegisterWorkerRequest* request,
      trainer::RegisterWorkerResponse* response) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    runs_->Register(*request, FinishCall(call, response));
    return call;
  }

  ServerUnaryReactor* Heartbeat(
      CallbackServerContext* context, const trainer::HeartbeatRequest* request,
      trainer::HeartbeatResponse* /*response*/) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    runs_->Heartbeat(request->run_id(), SessionToken(*context),
                     FinishCall(call));
    return call;
  }

  grpc::ServerReadReactor<RunStep>* PublishRunSteps(
      CallbackServerContext* context,
      trainer::PublishTelemetryResponse* response) override {
    return new PublishCall<RunStep>(SessionToken(*context), response, runs_,
                                    store_);
  }

  grpc::ServerReadReactor<RunEpisode>* PublishRunEpisodes(
      CallbackServerContext* context,
      trainer::PublishTelemetryResponse* response) override {
    return new PublishCall<RunEpisode>(SessionToken(*context), response, runs_,
                                       store_);
  }

  grpc::ServerWriteReactor<RunStep>* StreamRunSteps(
      CallbackServerContext* context,
      const trainer::StreamStepsRequest* request) override {
    return new EventStream<RunStep>(
        {.run_id = request->run_id(),
         .since = Since(Stream::kSteps, request->since_seq()),
         .follow = true,
         .control_key = ControlKey(*context)},
        hub_, runs_);
  }

  grpc::ServerWriteReactor<RunEpisode>* StreamRunEpisodes(
      CallbackServerContext* context,
      const trainer::StreamEpisodesRequest* request) override {
    return new EventStream<RunEpisode>(
        {.run_id = request->run_id(),
         .since = Since(Stream::kEpisodes, request->since_seq()),
         .follow = true,
         .control_key = ControlKey(*context)},
        hub_, runs_);
  }

  grpc::ServerBidiReactor<trainer::ControlEvent, trainer::ControlEvent>*
  ControlStream(CallbackServerContext* context) override {
    return new ControlCall(
        ControlKey(*context), SessionToken(*context),
        context->client_metadata().contains("acknowledge-controls"), hub_,
        runs_);
  }

  ServerUnaryReactor* GetHealth(
      CallbackServerContext* context,
      const trainer::HealthCheckRequest* /*request*/,
      trainer::HealthCheckResponse* response) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    *response = health_;
    response->set_healthy(DaemonState(*store_).ok());
    call->Finish(grpc::Status::OK);
    return call;
  }

 private:
  RunSupervisor* const runs_;
  WatchHub* const hub_;
  EventStore* const store_;
  const trainer::HealthCheckResponse health_;
};

class SlowLaneService final : public v1::SlowLane::CallbackService {
 public:
  SlowLaneService(RunSupervisor* runs, WatchHub* hub, EventStore* store,
                  FrameRelay* frames, FileRelay* files)
      : runs_(runs), hub_(hub), store_(store), frames_(frames), files_(files) {}

  grpc::ServerBidiReactor<v1::FromProxy, v1::ToProxy>* Link(
      CallbackServerContext* /*context*/) override {
    return StartProxyCall(runs_, store_, hub_);
  }

  grpc::ServerWriteReactor<v1::EventBatch>* StreamEvents(
      CallbackServerContext* context,
      const v1::StreamEventsRequest* request) override {
    Numbers since;
    since[Stream::kSteps] = request->since_step();
    since[Stream::kEpisodes] = request->since_episode();
    since[Stream::kLifecycle] = request->since_lifecycle();
    since[Stream::kMalformed] = request->since_malformed();
    since[Stream::kScalars] = request->has_since_scalars()
                                  ? request->since_scalars()
                                  : std::numeric_limits<uint64_t>::max();
    return new EventStream<v1::EventBatch>(
        {.run_id = request->run_id(),
         .since = since,
         .follow = request->follow(),
         .control_key = ControlKey(*context)},
        hub_, runs_);
  }

  ServerUnaryReactor* DescribeRuns(
      CallbackServerContext* context, const v1::DescribeRunsRequest* request,
      v1::DescribeRunsResponse* response) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    const absl::Status state = DaemonState(*store_);
    response->set_daemon_state(state.ok() ? "ok"
                                          : std::string(state.message()));
    response->set_queued_bytes(store_->queued_bytes());
    response->set_oldest_queued_secs(store_->oldest_queued_secs());
    response->set_watchers(hub_->watchers());
    runs_->Describe(
        {request->run_ids().begin(), request->run_ids().end()},
        [this, call, response, all = request->run_ids().empty()](
            absl::StatusOr<std::vector<v1::RunDescription>> runs) mutable {
          if (!runs.ok()) return call->Finish(ToGrpc(runs.status()));
          // The hub's thread has a connection to the table.
          hub_->Read([hub = hub_, call, response, all,
                      runs = *std::move(runs)](EventReader& reader) mutable {
            for (v1::RunDescription& run : runs) {
              const absl::Status read = AddDetails(reader, &run);
              if (all && absl::IsNotFound(read)) continue;
              if (!read.ok()) {
                response->clear_runs();
                return call->Finish(ToGrpc(read));
              }
              run.set_starved_watchers(
                  hub->StarvedControls(run.record().run_id()));
              *response->add_runs() = std::move(run);
            }
            call->Finish(grpc::Status::OK);
          });
        });
    return call;
  }

  ServerUnaryReactor* DeleteRun(CallbackServerContext* context,
                                const v1::DeleteRunRequest* request,
                                v1::DeleteRunResponse* /*response*/) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    runs_->Delete(request->run_id(), FinishCall(call));
    return call;
  }

  ServerUnaryReactor* RelayFrame(CallbackServerContext* context,
                                 const v1::RelayFrameRequest* request,
                                 v1::RelayFrameResponse* response) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    frames_->Take(request, FinishCall(call, response));
    return call;
  }

  ServerUnaryReactor* RelayFile(CallbackServerContext* context,
                                const v1::RelayFileRequest* request,
                                v1::RelayFileResponse* response) override {
    ServerUnaryReactor* const call = context->DefaultReactor();
    files_->Take(request, FinishCall(call, response));
    return call;
  }

 private:
  RunSupervisor* const runs_;
  WatchHub* const hub_;
  EventStore* const store_;
  FrameRelay* const frames_;
  FileRelay* const files_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTrainerService(
    RunSupervisor* runs, WatchHub* hub, EventStore* store,
    const trainer::HealthCheckResponse& health) {
  return std::make_unique<TrainerService>(runs, hub, store, health);
}

std::unique_ptr<grpc::Service> MakeSlowLaneService(RunSupervisor* runs,
                                                   WatchHub* hub,
                                                   EventStore* store,
                                                   FrameRelay* frames,
                                                   FileRelay* files) {
  return std::make_unique<SlowLaneService>(runs, hub, store, frames, files);
}

}  // namespace tandem::slow_lane
