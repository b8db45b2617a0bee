// StartProxyCall: the daemon's end of a proxy's Link.
//
// Data flow: hello -> the supervisor accepts -> welcome with the position in
// the table; batches -> EventStore -> durable; the worker's start, heartbeats
// and end -> the supervisor -> recorded. Ownership: shared by gRPC's reactor,
// the supervisor (as ProxyLink) and the store's callbacks. What comes after
// gRPC is done with the call is ignored.
//
// A call that fails is `refused`, and the proxy exits, only if another call
// would fail as well: there is no such run, or it is not its proxy. Else the
// call ends with the error, and the proxy connects again: to the next daemon,
// if this one is stopping; from the table's position, if its own was wrong.
//
//   return StartProxyCall(runs, store, hub);  // the reactor to give to gRPC
//
// A proxy may have kLinkWindow unacknowledged batches, and one while the store
// has no room: the number of proxies bounds the memory.

#ifndef TANDEM_SLOW_LANE_DAEMON_PROXY_CALL_H_
#define TANDEM_SLOW_LANE_DAEMON_PROXY_CALL_H_

#include <grpcpp/support/server_callback.h>

#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

// All arguments outlive the call.
grpc::ServerBidiReactor<v1::FromProxy, v1::ToProxy>* StartProxyCall(
    RunSupervisor* runs, EventStore* store, WatchHub* hub);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_PROXY_CALL_H_
