#include "slow_lane/daemon/server.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "program/grpc/mutual_tls.h"
// gRPC's generated code: each callback method hides the synchronous one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#pragma GCC diagnostic pop
#include "base/error.h"
#include "program/token_file.h"
#include "slow_lane/runs/limits.h"

namespace tandem::slow_lane {
namespace {

// The maximum of connections with TLS: each run on another machine has one.
constexpr int kMostTlsClients = 4096;

absl::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
          GRPC_SLICE_LENGTH(slice)};
}

bool IsSame(absl::string_view secret, absl::string_view shown) {
  int difference = secret.size() == shown.size() ? 0 : 1;
  for (size_t i = 0; i < shown.size(); ++i) {
    difference |= secret[i % secret.size()] ^ shown[i];
  }
  return difference == 0;
}

// gRPC calls it for each RPC, on its threads.
void CheckCall(void* state, grpc_auth_context* /*connection*/,
               const grpc_metadata* metadata, size_t count,
               grpc_process_auth_metadata_done_cb done, void* call) {
  const std::string& bearer = *static_cast<const std::string*>(state);
  const char* found = "no token";
  for (size_t i = 0; i < count; ++i) {
    if (TextOf(metadata[i].key) != kTokenKey) continue;
    if (IsSame(bearer, TextOf(metadata[i].value))) {
      return done(call, nullptr, 0, nullptr, 0, GRPC_STATUS_OK, nullptr);
    }
    found = "a different token";
  }
  const std::string text = absl::StrCat(
      "authorization: expected the token of the daemon's --token_file, since "
      "the kernel names no user for this connection, found ",
      found, "; next: set ", kTokenVariable,
      " for the client to a file with that token");
  done(call, nullptr, 0, nullptr, 0, GRPC_STATUS_PERMISSION_DENIED,
       text.c_str());
}

void DeleteBearer(void* state) { delete static_cast<std::string*>(state); }

// Plaintext credentials. Each call must have `authorization: Bearer TOKEN` in
// its metadata; otherwise PERMISSION_DENIED, with the next action. The time of
// the comparison depends only on the length of the client's token. gRPC's
// plaintext credentials take no AuthMetadataProcessor in C++, but those of its
// core do.
class TokenCredentials final : public grpc::ServerCredentials {
 public:
  explicit TokenCredentials(absl::string_view token)
      : bearer_(BearerOf(token)) {}

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*other*/) override {
    std::abort();  // CheckCall is the only check
  }

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    grpc_server_credentials* const credentials =
        grpc_insecure_server_credentials_create();
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = CheckCall,
                      .destroy = DeleteBearer,
                      .state = new std::string(bearer_)});
    const int port =
        grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const std::string bearer_;
};

}  // namespace

absl::StatusOr<Entrance> Entrance::Read(const Options& options) {
  TANDEM_ASSIGN_OR_RETURN(AllowedUsers users,
                          AllowedUsers::Parse(options.allow_users));
  Entrance entrance(options, std::move(users));
  if (!options.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadToken(options.token_file);
    if (!token.ok()) {
      return absl::Status(
          token.status().code(),
          absl::StrCat("--token_file: ", token.status().message()));
    }
    entrance.token_ = *std::move(token);
  }
  if (options.listen != "none") {
    TANDEM_ASSIGN_OR_RETURN(entrance.tcp_, options.allow_remote
                                               ? AddressesOf(options.listen)
                                               : LoopbackOf(options.listen));
  }
  if (!options.tls.certificate.empty()) {
    TANDEM_ASSIGN_OR_RETURN(entrance.tls_, MutualTls(options.tls));
  }
  return entrance;
}

absl::Status Entrance::Listen() {
  std::vector<std::string> paths = {kSocketFile};
  if (!options_.socket.empty()) paths.push_back(options_.socket);
  for (const std::string& path : paths) {
    TANDEM_RETURN_IF_ERROR(RemoveStaleSocket(path));
  }
  if (!tcp_.empty()) {
    TANDEM_ASSIGN_OR_RETURN(TcpSockets tcp, ListenOnTcp(tcp_, options_.listen));
    sockets_ = std::move(tcp.sockets);
    address_ = absl::StrCat(
        options_.listen.substr(0, options_.listen.rfind(':')), ":", tcp.port);
  }
  for (const std::string& path : paths) {
    TANDEM_ASSIGN_OR_RETURN(ListeningSocket socket, ListenOnUnix(path));
    sockets_.push_back(std::move(socket));
  }
  // The kernel states each client's user, so the mode may admit all users.
  if (users_.HasOthers() && !options_.socket.empty() &&
      chmod(options_.socket.c_str(), 0666) != 0) {
    return MakeSystemError("--socket: chmod", options_.socket, errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    Entrance entrance, const std::vector<grpc::Service*>& services,
    const std::string& data_dir) {
  StartGrpc("tandem-daemon");
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  std::unique_ptr<Server> server(new Server);
  server->own_ = AddAcceptor(&builder, grpc::InsecureServerCredentials());
  if (entrance.has_tls()) {
    server->unknown_ = AddAcceptor(&builder, entrance.tls_);
  } else if (entrance.token_.has_value()) {
    server->unknown_ = AddAcceptor(
        &builder, std::make_shared<TokenCredentials>(*entrance.token_));
  }
  for (grpc::Service* const service : services) {
    builder.RegisterService(service);
  }
  server->grpc_ = builder.BuildAndStart();
  if (server->grpc_ == nullptr) {
    return absl::InternalError(
        "expected gRPC to start a server, found that it does not; next: its "
        "own lines above say why");
  }
  // By default the health service knows the server, but not the services.
  for (const char* const service :
       {gymgui::trainer::TrainerService::service_full_name(),
        v1::SlowLane::service_full_name()}) {
    server->grpc_->GetHealthCheckService()->SetServingStatus(service, true);
  }
  server->acceptor_ = std::make_unique<ConnectionAcceptor>(
      std::move(entrance.sockets_), std::move(entrance.users_),
      ConnectionAcceptor::Options{
          .program = "tandem-daemon",
          .take_own = HandTo(server->own_.get()),
          .take_unknown = HandTo(server->unknown_.get()),
          .most_unknown = entrance.has_tls() ? kMostTlsClients
                                             : ConnectionAcceptor::kMostUnknown,
          .tcp_is_tls = entrance.has_tls(),
          .next_of_unknown =
              absl::StrCat("connect to unix:", data_dir, "/", kSocketFile,
                           ", or start the daemon with --token_file")});
  return server;
}

void Server::Shutdown(std::chrono::milliseconds grace) {
  // After the same time gRPC cancels the remaining calls.
  acceptor_->StopAccepting(absl::FromChrono(grace));
  grpc_->Shutdown(std::chrono::system_clock::now() + grace);
  acceptor_->Stop();
}

}  // namespace tandem::slow_lane
