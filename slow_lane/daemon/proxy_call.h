// ProxyCall: the daemon's end of a proxy's Link.
//
// Data flow: hello -> the supervisor agrees -> welcome with the position in the
// table; batches -> EventStore -> durable; the worker's start, heartbeats and
// end -> the supervisor -> recorded. Ownership: shared by gRPC's reactor, the
// supervisor (as ProxyLink) and the store's callbacks. What comes after gRPC is
// done with the call is ignored.
//
// A call that fails is `refused`, and the proxy leaves, only where the next
// call could not do better: there is no such run, or it is not its proxy. Else
// the call ends with the error, and the proxy says hello again: to the next
// daemon, if this one is stopping; from the table's position, if that is what
// was wrong.
//
//   return ProxyCall::Start(runs, store, hub);  // the reactor to give to gRPC
//
// A proxy may have kLinkWindow batches on their way. While the store has no
// room it has one: so memory is bounded by the number of proxies.

#ifndef TANDEM_SLOW_LANE_DAEMON_PROXY_CALL_H_
#define TANDEM_SLOW_LANE_DAEMON_PROXY_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

class ProxyCall final : public ProxyLink,
                        public std::enable_shared_from_this<ProxyCall> {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::FromProxy, v1::ToProxy>;

  static Reactor* Start(RunSupervisor* runs, EventStore* store, WatchHub* hub);

  void Recorded() override;
  void Refuse(const std::string& reason) override;

 private:
  class Adapter;

  ProxyCall(RunSupervisor* runs, EventStore* store, WatchHub* hub)
      : runs_(runs), store_(store), hub_(hub) {}

  // gRPC's.
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnDone();

  void Welcome(EventReader& reader);  // on the hub's thread

  // Refuses, or ends the call with the error.
  void Fail(const absl::Status& status);

  // All with mutex_ held.
  void FailLocked(const absl::Status& status);
  void Hello(const v1::Hello& hello);
  void Append(v1::EventBatch* batch);
  void ReadOn();
  void WriteNext();
  void FinishIfOver();

  RunSupervisor* const runs_;
  EventStore* const store_;
  WatchHub* const hub_;

  std::mutex mutex_;            // guards all that follows
  Reactor* reactor_ = nullptr;  // until gRPC is done with it
  v1::FromProxy message_;       // being read
  v1::ToProxy answer_;          // being written
  std::string run_id_;
  bool reading_ = true;
  bool writing_ = false;
  bool closing_ = false;  // no more reads; what is to be said is still written
  bool finished_ = false;
  int on_their_way_ = 0;
  // What is to be said, in this order.
  std::optional<v1::Position> welcome_;
  std::optional<v1::Position> durable_;
  bool recorded_ = false;
  std::optional<std::string> refused_;
  absl::Status end_;  // how the call ends
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_PROXY_CALL_H_
