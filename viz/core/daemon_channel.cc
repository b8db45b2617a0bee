#include "viz/core/daemon_channel.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/printable.h"
#include "program/grpc/mutual_tls.h"
#include "program/token_file.h"
#include "schema/protos/slow_lane.pb.h"

namespace tandem {
namespace {

namespace v1 = slow_lane::v1;

constexpr int kMostRetryMs = 1000;

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(
    const std::string& target) {
  const auto credentials = DaemonCredentials(target);
  if (credentials.ok()) return *credentials;
  // A daemon with TLS refuses calls without them.
  std::cerr << "the daemon at " << Printable(target) << ": "
            << Printable(credentials.status().message()) << std::endl;
  return grpc::InsecureChannelCredentials();
}

}  // namespace

std::string DaemonTarget() {
  const char* const given = std::getenv("TANDEM_DAEMON");
  if (given != nullptr && *given != '\0') return given;
  return absl::StrCat("127.0.0.1:", int{v1::DEFAULT_PORT});
}

std::shared_ptr<grpc::Channel> NewDaemonChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(v1::MAX_MESSAGE_BYTES);
  arguments.SetMaxSendMessageSize(v1::MAX_MESSAGE_BYTES);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMostRetryMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMostRetryMs / 10);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A connection of its own: the daemon counts credits by connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, CredentialsOf(target), arguments);
}

void AwaitConnection(grpc::Channel* channel, double secs) {
  channel->WaitForConnected(
      std::chrono::system_clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(secs * 1e3)));
}

absl::Status AddDaemonToken(grpc::ClientContext* context) {
  const char* const path = std::getenv(kTokenVariable);
  if (path == nullptr || *path == '\0') return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const std::string token, ReadToken(path));
  context->AddMetadata(kTokenKey, BearerOf(token));
  return absl::OkStatus();
}

absl::Status DaemonStatus(const grpc::Status& status, absl::string_view call,
                          absl::string_view target) {
  if (status.ok()) return absl::OkStatus();
  std::string next;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    next = absl::StrCat(
        ". Start a daemon there, or set TANDEM_DAEMON to its address",
        CertificateAdvice(std::string(target)));
  }
  // The numbers of both enumerations are gRPC's.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(call, " at ", Printable(target), ": ",
                                   Printable(status.error_message()), next));
}

}  // namespace tandem
