#include "slow_lane/proxy/daemon_link.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/eventfd.h>

#include <utility>

#include "slow_lane/wire/limits.h"

namespace tandem::slow_lane {
namespace {

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A daemon that is stopped or hangs, or whose machine has died, answers no
  // ping: the call breaks. So does a stream on which nothing comes for long:
  // without the last of these, gRPC stops to ask after two pings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 15'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A daemon that comes back is found at once.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // No connection that an earlier channel has given up.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

DaemonLink::DaemonLink(const std::string& target)
    : target_(target), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

DaemonLink::~DaemonLink() { Disconnect(); }

bool DaemonLink::Connect(const v1::Hello& hello) {
  Disconnect();
  // A new channel each time, and no wait for it: gRPC's timers go by the wall
  // clock and stand still once that was set back. A call needs none of them to
  // fail where there is no daemon.
  stub_ = v1::SlowLane::NewStub(grpc::CreateCustomChannel(
      target_, grpc::InsecureChannelCredentials(), Arguments()));
  context_ = std::make_unique<grpc::ClientContext>();
  stream_ = stub_->Link(context_.get());
  {
    const std::lock_guard lock(mutex_);
    broken_ = false;
    answers_.clear();
  }
  reader_ =
      std::thread([this, stream = stream_.get()] { ReadAnswers(stream); });
  v1::FromProxy message;
  *message.mutable_hello() = hello;
  return Send(message);
}

bool DaemonLink::connected() const {
  const std::lock_guard lock(mutex_);
  return !broken_;
}

bool DaemonLink::Send(const v1::FromProxy& message) {
  return connected() && stream_->Write(message);
}

std::vector<v1::ToProxy> DaemonLink::Take() {
  eventfd_t count;
  eventfd_read(wake_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void DaemonLink::Disconnect() {
  if (stream_ == nullptr) return;
  context_->TryCancel();
  reader_.join();
  stream_->Finish();
  stream_.reset();
  context_.reset();
}

void DaemonLink::ReadAnswers(Stream* stream) {
  v1::ToProxy answer;
  while (stream->Read(&answer)) {
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back(std::move(answer));
    }
    eventfd_write(wake_.get(), 1);
  }
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
  }
  eventfd_write(wake_.get(), 1);
}

}  // namespace tandem::slow_lane
