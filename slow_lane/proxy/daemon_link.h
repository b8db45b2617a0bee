// DaemonLink: a proxy's connection to its daemon, which may be lost and made
// again.
//
// Data flow: Send -> the Link call -> the daemon; its answers -> a thread ->
// Take, after `wake_fd` became readable.
// Ownership: the proxy owns it; one thread uses it. The link owns its reading
// thread.

#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/os/unique_fd.h"
#include "schema/protos/slow_lane.grpc.pb.h"

namespace tandem::slow_lane {

class DaemonLink {
 public:
  // `target` in gRPC's form. Does not connect.
  DaemonLink(const std::string& target,
             std::shared_ptr<grpc::ChannelCredentials> credentials);
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  // Drops the old call and begins a new one. Returns false if there is no
  // daemon.
  bool Connect(const v1::Hello& hello);

  // Returns the run's configuration. Blocks at most `secs`. kNotFound: the
  // daemon does not have the run; kUnavailable, kDeadlineExceeded: no daemon.
  absl::StatusOr<std::string> FetchConfig(const std::string& run_id,
                                          int secs) const;

  // Returns the daemon's calls by a connection of their own. Any thread; does
  // not connect.
  std::unique_ptr<v1::SlowLane::Stub> NewStub() const;

  // Whether the call is open, as far as is known.
  bool connected() const;

  // Sends a message. Blocks while the daemon reads nothing: until gRPC detects
  // that it is frozen (half a minute); or, since it then answers pings, as long
  // as its disk and its queue are full. Returns false if the call is broken.
  bool Send(const v1::FromProxy& message);

  // Returns the daemon's messages since the last Take, in order.
  std::vector<v1::ToProxy> Take();

  // Readable when there are messages, or the call is broken.
  int wake_fd() const { return wake_.get(); }

 private:
  using Stream = grpc::ClientReaderWriter<v1::FromProxy, v1::ToProxy>;

  void Disconnect();
  void ReadAnswers(Stream* stream);

  const std::string target_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const UniqueFd wake_;  // an eventfd
  std::unique_ptr<v1::SlowLane::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
  std::thread reader_;

  mutable Mutex mutex_;
  std::vector<v1::ToProxy> answers_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace tandem::slow_lane
