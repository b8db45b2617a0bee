// TrainerService and SlowLaneService: the calls of schema/protos, each handed
// to whom it concerns.
//
// Data flow: gRPC's threads -> supervisor, hub, store -> an answer later. No
// call blocks one of gRPC's threads.
//
//   TrainerService trainer(&runs, &hub, &store, health);
//   builder.RegisterService(&trainer);

#ifndef TANDEM_SLOW_LANE_DAEMON_TRAINER_SERVICE_H_
#define TANDEM_SLOW_LANE_DAEMON_TRAINER_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <mutex>
#include <string>

// Of gRPC's own: each callback method hides the synchronous one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#pragma GCC diagnostic pop
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

class TrainerService final
    : public gymgui::trainer::TrainerService::CallbackService {
 public:
  // `health`: what GetHealth says, but for `healthy`, which is the store's
  // state, and where the daemon listens.
  TrainerService(RunSupervisor* runs, WatchHub* hub, EventStore* store,
                 const gymgui::trainer::HealthCheckResponse& health)
      : runs_(runs), hub_(hub), store_(store), health_(health) {}

  // Known only once the server, and so this service, is at work.
  void SetListenAddress(const std::string& address) {
    const std::lock_guard lock(mutex_);
    health_.set_listen_address(address);
  }

  grpc::ServerUnaryReactor* SubmitRun(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::SubmitRunRequest* request,
      gymgui::trainer::SubmitRunResponse* response) override;
  grpc::ServerUnaryReactor* CancelRun(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::CancelRunRequest* request,
      gymgui::trainer::CancelRunResponse* response) override;
  grpc::ServerUnaryReactor* ListRuns(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::ListRunsRequest* request,
      gymgui::trainer::ListRunsResponse* response) override;
  grpc::ServerWriteReactor<gymgui::trainer::RunRecord>* WatchRuns(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::WatchRunsRequest* request) override;
  grpc::ServerUnaryReactor* RegisterWorker(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::RegisterWorkerRequest* request,
      gymgui::trainer::RegisterWorkerResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::HeartbeatRequest* request,
      gymgui::trainer::HeartbeatResponse* response) override;
  grpc::ServerReadReactor<gymgui::trainer::RunStep>* PublishRunSteps(
      grpc::CallbackServerContext* context,
      gymgui::trainer::PublishTelemetryResponse* response) override;
  grpc::ServerReadReactor<gymgui::trainer::RunEpisode>* PublishRunEpisodes(
      grpc::CallbackServerContext* context,
      gymgui::trainer::PublishTelemetryResponse* response) override;
  grpc::ServerWriteReactor<gymgui::trainer::RunStep>* StreamRunSteps(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::StreamStepsRequest* request) override;
  grpc::ServerWriteReactor<gymgui::trainer::RunEpisode>* StreamRunEpisodes(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::StreamEpisodesRequest* request) override;
  grpc::ServerBidiReactor<gymgui::trainer::ControlEvent,
                          gymgui::trainer::ControlEvent>*
  ControlStream(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetHealth(
      grpc::CallbackServerContext* context,
      const gymgui::trainer::HealthCheckRequest* request,
      gymgui::trainer::HealthCheckResponse* response) override;

 private:
  RunSupervisor* const runs_;
  WatchHub* const hub_;
  EventStore* const store_;
  std::mutex mutex_;  // guards health_
  gymgui::trainer::HealthCheckResponse health_;
};

class SlowLaneService final : public v1::SlowLane::CallbackService {
 public:
  SlowLaneService(RunSupervisor* runs, WatchHub* hub, EventStore* store)
      : runs_(runs), hub_(hub), store_(store) {}

  grpc::ServerBidiReactor<v1::FromProxy, v1::ToProxy>* Link(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::EventBatch>* StreamEvents(
      grpc::CallbackServerContext* context,
      const v1::StreamEventsRequest* request) override;
  grpc::ServerUnaryReactor* DescribeRuns(
      grpc::CallbackServerContext* context,
      const v1::DescribeRunsRequest* request,
      v1::DescribeRunsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteRun(grpc::CallbackServerContext* context,
                                      const v1::DeleteRunRequest* request,
                                      v1::DeleteRunResponse* response) override;

 private:
  RunSupervisor* const runs_;
  WatchHub* const hub_;
  EventStore* const store_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_TRAINER_SERVICE_H_
