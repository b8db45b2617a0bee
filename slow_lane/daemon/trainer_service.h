// The services of schema/protos: TrainerService and SlowLane.
//
// Data flow: gRPC's threads -> supervisor, hub, store -> a later answer. No
// call blocks one of gRPC's threads.
// Ownership: the caller owns the services; all arguments must outlive them.

#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <memory>

#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/file_relay.h"
#include "slow_lane/daemon/frame_relay.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

// gymgui.trainer.TrainerService. `health`: the response to GetHealth, except
// `healthy`, which is the store's state.
std::unique_ptr<grpc::Service> MakeTrainerService(
    RunSupervisor* runs, WatchHub* hub, EventStore* store,
    const gymgui::trainer::HealthCheckResponse& health);

// tandem.slow_lane.v1.SlowLane.
std::unique_ptr<grpc::Service> MakeSlowLaneService(RunSupervisor* runs,
                                                   WatchHub* hub,
                                                   EventStore* store,
                                                   FrameRelay* frames,
                                                   FileRelay* files);

}  // namespace tandem::slow_lane
