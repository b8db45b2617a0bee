#include "slow_lane/proxy/daemon_link.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/eventfd.h>

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "program/grpc/mutual_tls.h"
#include "slow_lane/runs/limits.h"

namespace tandem::slow_lane {
namespace {

grpc::ChannelArguments Arguments(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // The call breaks if the daemon answers no ping: it is stopped, hangs, or its
  // machine has failed. Without the third option, gRPC stops after two pings on
  // an idle stream.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 15'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  if (!absl::StartsWith(target, "unix:")) {
    // The limit of an attempt to connect, which the proxy waits for; a network
    // may drop each packet.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  }
  // Finds a restarted daemon quickly.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Does not reuse connections of earlier channels.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

DaemonLink::DaemonLink(const std::string& target,
                       std::shared_ptr<grpc::ChannelCredentials> credentials)
    : target_(target),
      credentials_(std::move(credentials)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

DaemonLink::~DaemonLink() { Disconnect(); }

std::unique_ptr<v1::SlowLane::Stub> DaemonLink::NewStub() const {
  return v1::SlowLane::NewStub(
      grpc::CreateCustomChannel(target_, credentials_, Arguments(target_)));
}

absl::StatusOr<std::string> DaemonLink::FetchConfig(const std::string& run_id,
                                                    int secs) const {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(secs));
  v1::DescribeRunsRequest request;
  request.add_run_ids(run_id);
  v1::DescribeRunsResponse response;
  const grpc::Status status =
      NewStub()->DescribeRuns(&context, request, &response);
  if (!status.ok()) {
    // The numbers of both enumerations are gRPC's.
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        absl::StrCat("the daemon at ", Printable(target_), ": ",
                                     Printable(status.error_message()),
                                     CertificateAdvice(target_)));
  }
  if (response.runs_size() != 1) {
    return absl::InternalError("expected one run, found another number");
  }
  return response.runs(0).config_json();
}

bool DaemonLink::Connect(const v1::Hello& hello) {
  Disconnect();
  // Makes a new channel for each call, and does not wait for it. gRPC's timers
  // use the wall clock, and stop if that is set back. Without a daemon, a call
  // fails without a timer.
  stub_ = NewStub();
  context_ = std::make_unique<grpc::ClientContext>();
  stream_ = stub_->Link(context_.get());
  {
    MutexLock lock(&mutex_);
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
  MutexLock lock(&mutex_);
  return !broken_;
}

bool DaemonLink::Send(const v1::FromProxy& message) {
  return connected() && stream_->Write(message);
}

std::vector<v1::ToProxy> DaemonLink::Take() {
  eventfd_t count;
  eventfd_read(wake_.get(), &count);
  MutexLock lock(&mutex_);
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
      MutexLock lock(&mutex_);
      answers_.push_back(std::move(answer));
    }
    eventfd_write(wake_.get(), 1);
  }
  {
    MutexLock lock(&mutex_);
    broken_ = true;
  }
  eventfd_write(wake_.get(), 1);
}

}  // namespace tandem::slow_lane
