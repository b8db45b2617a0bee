#include "slow_lane/daemon/trainer_service.h"

#include <unistd.h>

#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "slow_lane/daemon/proxy_call.h"
#include "slow_lane/daemon/publish_call.h"
#include "slow_lane/daemon/reactor.h"
#include "slow_lane/daemon/stream_calls.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/wire/limits.h"

namespace tandem::slow_lane {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using gymgui::trainer::RegisterWorkerResponse;
using gymgui::trainer::RunEpisode;
using gymgui::trainer::RunRecord;
using gymgui::trainer::RunStep;

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

// OK, or what keeps the daemon from its work, for people.
absl::Status DaemonState(const EventStore& store) {
  if (access(kSocketFile, F_OK) != 0) {
    return absl::UnavailableError(
        absl::StrCat("expected the socket by which proxies reach this daemon, "
                     "found it removed: ",
                     kSocketFile,
                     " in the data folder; next: start the daemon again, "
                     "nothing is lost"));
  }
  return store.state();
}

Numbers NoStream() {
  Numbers since;
  for (const Stream stream : kAllStreams) {
    since[stream] = std::numeric_limits<uint64_t>::max();
  }
  return since;
}

}  // namespace

ServerUnaryReactor* TrainerService::SubmitRun(
    CallbackServerContext* context,
    const gymgui::trainer::SubmitRunRequest* request,
    gymgui::trainer::SubmitRunResponse* response) {
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

ServerUnaryReactor* TrainerService::CancelRun(
    CallbackServerContext* context,
    const gymgui::trainer::CancelRunRequest* request,
    gymgui::trainer::CancelRunResponse* /*response*/) {
  ServerUnaryReactor* const call = context->DefaultReactor();
  runs_->Cancel(request->run_id(), FinishCall(call));
  return call;
}

ServerUnaryReactor* TrainerService::ListRuns(
    CallbackServerContext* context,
    const gymgui::trainer::ListRunsRequest* request,
    gymgui::trainer::ListRunsResponse* response) {
  ServerUnaryReactor* const call = context->DefaultReactor();
  std::vector<RunState> states;
  for (const int state : request->status_filter()) {
    states.push_back(static_cast<RunState>(state));
  }
  runs_->List(std::move(states), FinishCall(call, response));
  return call;
}

grpc::ServerWriteReactor<RunRecord>* TrainerService::WatchRuns(
    CallbackServerContext* /*context*/,
    const gymgui::trainer::WatchRunsRequest* request) {
  return new UpdateStream(*request, hub_);
}

ServerUnaryReactor* TrainerService::RegisterWorker(
    CallbackServerContext* context,
    const gymgui::trainer::RegisterWorkerRequest* request,
    RegisterWorkerResponse* response) {
  ServerUnaryReactor* const call = context->DefaultReactor();
  runs_->Register(*request, FinishCall(call, response));
  return call;
}

ServerUnaryReactor* TrainerService::Heartbeat(
    CallbackServerContext* context,
    const gymgui::trainer::HeartbeatRequest* request,
    gymgui::trainer::HeartbeatResponse* /*response*/) {
  ServerUnaryReactor* const call = context->DefaultReactor();
  runs_->Heartbeat(request->run_id(), SessionToken(*context), FinishCall(call));
  return call;
}

grpc::ServerReadReactor<RunStep>* TrainerService::PublishRunSteps(
    CallbackServerContext* context,
    gymgui::trainer::PublishTelemetryResponse* response) {
  return new PublishCall<RunStep>(SessionToken(*context), response, runs_,
                                  store_);
}

grpc::ServerReadReactor<RunEpisode>* TrainerService::PublishRunEpisodes(
    CallbackServerContext* context,
    gymgui::trainer::PublishTelemetryResponse* response) {
  return new PublishCall<RunEpisode>(SessionToken(*context), response, runs_,
                                     store_);
}

grpc::ServerWriteReactor<RunStep>* TrainerService::StreamRunSteps(
    CallbackServerContext* context,
    const gymgui::trainer::StreamStepsRequest* request) {
  Numbers since = NoStream();
  since[Stream::kSteps] = request->since_seq();
  return new EventStream<RunStep>({.run_id = request->run_id(),
                                   .since = since,
                                   .follow = true,
                                   .control_key = ControlKey(*context)},
                                  hub_, runs_);
}

grpc::ServerWriteReactor<RunEpisode>* TrainerService::StreamRunEpisodes(
    CallbackServerContext* context,
    const gymgui::trainer::StreamEpisodesRequest* request) {
  Numbers since = NoStream();
  since[Stream::kEpisodes] = request->since_seq();
  return new EventStream<RunEpisode>({.run_id = request->run_id(),
                                      .since = since,
                                      .follow = true,
                                      .control_key = ControlKey(*context)},
                                     hub_, runs_);
}

grpc::ServerBidiReactor<gymgui::trainer::ControlEvent,
                        gymgui::trainer::ControlEvent>*
TrainerService::ControlStream(CallbackServerContext* context) {
  return new ControlCall(ControlKey(*context), hub_, runs_);
}

ServerUnaryReactor* TrainerService::GetHealth(
    CallbackServerContext* context,
    const gymgui::trainer::HealthCheckRequest* /*request*/,
    gymgui::trainer::HealthCheckResponse* response) {
  ServerUnaryReactor* const call = context->DefaultReactor();
  {
    const std::lock_guard lock(mutex_);
    *response = health_;
  }
  response->set_healthy(DaemonState(*store_).ok());
  call->Finish(grpc::Status::OK);
  return call;
}

grpc::ServerBidiReactor<v1::FromProxy, v1::ToProxy>* SlowLaneService::Link(
    CallbackServerContext* /*context*/) {
  return ProxyCall::Start(runs_, store_, hub_);
}

grpc::ServerWriteReactor<v1::EventBatch>* SlowLaneService::StreamEvents(
    CallbackServerContext* context, const v1::StreamEventsRequest* request) {
  Numbers since;
  since[Stream::kSteps] = request->since_step();
  since[Stream::kEpisodes] = request->since_episode();
  since[Stream::kLifecycle] = request->since_lifecycle();
  since[Stream::kMalformed] = request->since_malformed();
  return new EventStream<v1::EventBatch>({.run_id = request->run_id(),
                                          .since = since,
                                          .follow = request->follow(),
                                          .control_key = ControlKey(*context)},
                                         hub_, runs_);
}

ServerUnaryReactor* SlowLaneService::DescribeRuns(
    CallbackServerContext* context, const v1::DescribeRunsRequest* request,
    v1::DescribeRunsResponse* response) {
  ServerUnaryReactor* const call = context->DefaultReactor();
  const absl::Status state = DaemonState(*store_);
  response->set_daemon_state(state.ok() ? "ok" : std::string(state.message()));
  response->set_queued_bytes(store_->queued_bytes());
  response->set_oldest_queued_secs(store_->oldest_queued_secs());
  response->set_watchers(hub_->watchers());
  runs_->Describe(
      {request->run_ids().begin(), request->run_ids().end()},
      [this, call, response, all = request->run_ids().empty()](
          absl::StatusOr<std::vector<v1::RunDescription>> runs) mutable {
        if (!runs.ok()) return call->Finish(ToGrpc(runs.status()));
        // The hub's thread has a connection to the table.
        hub_->Read([call, response, all,
                    runs = *std::move(runs)](EventReader& reader) mutable {
          for (v1::RunDescription& run : runs) {
            const absl::StatusOr<RunProgress> progress =
                reader.Progress(run.record().run_id());
            if (all && absl::IsNotFound(progress.status())) {
              continue;  // deleted meanwhile
            }
            if (!progress.ok()) {
              response->clear_runs();
              return call->Finish(ToGrpc(progress.status()));
            }
            AddProgress(*progress, &run);
            *response->add_runs() = std::move(run);
          }
          call->Finish(grpc::Status::OK);
        });
      });
  return call;
}

ServerUnaryReactor* SlowLaneService::DeleteRun(
    CallbackServerContext* context, const v1::DeleteRunRequest* request,
    v1::DeleteRunResponse* /*response*/) {
  ServerUnaryReactor* const call = context->DefaultReactor();
  runs_->Delete(request->run_id(), FinishCall(call));
  return call;
}

}  // namespace tandem::slow_lane
