// StartProxyCall: the daemon's end of a proxy's Link.
//
// Data flow: hello -> the supervisor accepts -> welcome with the position in
// the table; batches -> EventStore -> durable; the worker's start, heartbeats
// and end -> the supervisor -> recorded.
// Ownership: gRPC's reactor, the supervisor (as ProxyLink) and the store's
// callbacks share it. After gRPC has finished with the call, later results are
// ignored.
//
// After a failed call the proxy exits only if it was `refused`, since another
// call would fail as well: the run is unknown, or the proxy is not the run's.
// Otherwise the call ends with the error, and the proxy connects again. It then
// reaches the next daemon, if this one is stopping; or it begins at the table's
// position, if its own was wrong.
//
// A proxy may have kLinkWindow unacknowledged batches, and one while the store
// has no room. So the number of proxies limits the memory.

#pragma once

#include <grpcpp/support/server_callback.h>

#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

// All arguments must outlive the call.
grpc::ServerBidiReactor<v1::FromProxy, v1::ToProxy>* StartProxyCall(
    RunSupervisor* runs, EventStore* store, WatchHub* hub);

}  // namespace tandem::slow_lane
