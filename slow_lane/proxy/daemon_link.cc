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
  // The call breaks if the daemon answers no ping: it is stopped, hangs, or its
  // machine has failed. Without the third option, gRPC stops after two pings on
  // an idle stream.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 15'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Finds a restarted daemon quickly.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Does not reuse connections of earlier channels.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

DaemonLink::DaemonLink(const std::string& target)
    : target_(target), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

DaemonLink::~DaemonLink() { Disconnect(); }

bool DaemonLink::Connect(const v1::Hello& hello) {
  Disconnect();
  // Makes a new channel for each call, and does not wait for it. gRPC's timers
  // use the wall clock, and stop if that is set back. Without a daemon, a call
  // fails without a timer.
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
