// DaemonLink: a proxy's connection to its daemon, which may come and go.
//
// Data flow: Send -> the Link call -> the daemon; its answers -> a thread ->
// Take, after `wake_fd` became readable.
// Ownership: the proxy's, one thread; the reading thread is the link's own.
//
//   DaemonLink link("unix:daemon.sock");
//   if (!link.connected()) link.Connect(hello);   // then comes a welcome
//   if (!link.Send(message)) ...                  // broken: connect again
//   for (v1::ToProxy& answer : link.Take()) ...

#ifndef TANDEM_SLOW_LANE_PROXY_DAEMON_LINK_H_
#define TANDEM_SLOW_LANE_PROXY_DAEMON_LINK_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "schema/protos/slow_lane.grpc.pb.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

class DaemonLink {
 public:
  // `target` as gRPC names it. Does not connect.
  explicit DaemonLink(const std::string& target);
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  // Drops what there was and begins a new call. False: no daemon.
  bool Connect(const v1::Hello& hello);

  // Whether the call stands, as far as is known.
  bool connected() const;

  // Blocks while the daemon takes nothing in: until it is noticed to be frozen
  // (half a minute), or, since it then answers pings, for as long as its disk
  // is full and its queue as well. False: the call is broken.
  bool Send(const v1::FromProxy& message);

  // What the daemon has said since the last Take, in its order.
  std::vector<v1::ToProxy> Take();

  // Readable when there is something to take, or the call broke.
  int wake_fd() const { return wake_.get(); }

 private:
  using Stream = grpc::ClientReaderWriter<v1::FromProxy, v1::ToProxy>;

  void Disconnect();
  void ReadAnswers(Stream* stream);

  const std::string target_;
  const UniqueFd wake_;  // an eventfd
  std::unique_ptr<v1::SlowLane::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
  std::thread reader_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<v1::ToProxy> answers_;
  bool broken_ = true;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_DAEMON_LINK_H_
