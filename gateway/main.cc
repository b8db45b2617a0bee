// tandem-gateway: serves the gRPC protocol hazel.rpc, which programs for
// LuckyEngine call, with an engine of Tandem.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/end_with_parent.h"
#include "base/os/stop_signals.h"
#include "base/printable.h"
#include "base/quoted.h"
#include "gateway/gateway.h"
#include "gateway/services.h"
#include "gateway/stopping.h"
#include "program/grpc/connection_acceptor.h"
#include "program/grpc/mutual_tls.h"
#include "program/grpc/peer_owner.h"
#include "program/grpc/server_parts.h"
#include "program/listening_sockets.h"
#include "program/program_flags.h"
#include "program/tls/tls_flags.h"
#include "schema/layout/error_codes.h"
#include "transport/region.h"

ABSL_FLAG(std::string, name, "", "the engine's name: its --name");
ABSL_FLAG(std::string, listen, "127.0.0.1:50051",
          "HOST:PORT; port 0 takes a free one; \"none\": --socket only");
ABSL_FLAG(bool, allow_remote, false,
          "--listen may be an address that other machines reach; needs the "
          "three files of TLS");
ABSL_FLAG(std::string, tls_cert, "",
          "PEM file with the gateway's certificate: --listen speaks TLS");
ABSL_FLAG(std::string, tls_key, "",
          "PEM file with its key, without passphrase");
ABSL_FLAG(std::string, tls_client_ca, "",
          "PEM file with the authorities that have signed the certificates of "
          "the programs");
ABSL_FLAG(std::string, socket, "",
          "path of a Unix socket, with mode 0600, beside --listen");
ABSL_FLAG(std::string, allow_users, "",
          "users besides this one whose programs may connect by TCP, as names "
          "or uids between commas");
ABSL_FLAG(absl::Duration, release_after, absl::Seconds(60),
          "time without a step, such as 60s, after which the gateway releases "
          "the engine's client slot");
ABSL_FLAG(int32_t, parent, 0,
          "of an engine's --grpc: the process that started this one and with "
          "which it ends");
ABSL_FLAG(bool, list_rpcs, false,
          "prints each RPC that it serves and what answers it, with a tab "
          "between them, and exits");

namespace tandem::gateway {
namespace {

constexpr char kUsage[] =
    "Serves an engine to programs for LuckyEngine, by gRPC.\n\n"
    "  tandem-gateway --name demo\n\n"
    "Stops at Ctrl-C or SIGTERM. The engine may restart while the gateway "
    "runs.\n\n"
    "Exit codes: 0 stopped, 1 failed, 2 wrong command line.";
constexpr int kWrongCommandLine = 2;
constexpr std::chrono::milliseconds kStopLimit(200);
// Of a request. The largest is a contract; images only leave.
constexpr int kMostRequestBytes = 4 << 20;

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::cerr << "tandem-gateway: " << PrintableLines(status.message()) << "\n";
  return 1;
}

void PrintRpcs() {
  for (const ServedRpc& served : ServedRpcs()) {
    std::cout << served.rpc->service()->name() << "/" << served.rpc->name()
              << "\t" << served.served_by << "\n";
  }
}

TlsFiles FilesOfFlags() {
  return {.certificate = absl::GetFlag(FLAGS_tls_cert),
          .key = absl::GetFlag(FLAGS_tls_key),
          .authorities = absl::GetFlag(FLAGS_tls_client_ca)};
}

absl::Status CheckFlags() {
  TANDEM_RETURN_IF_ERROR(
      CheckTlsFlags({.files = FilesOfFlags(),
                     .knows_clients = true,
                     .listens = absl::GetFlag(FLAGS_listen) != "none",
                     .allow_remote = absl::GetFlag(FLAGS_allow_remote)}));
  const std::string name = absl::GetFlag(FLAGS_name);
  if (name.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--name: expected the name of an engine, found none; "
                     "next: tandem-gateway --name NAME, with the engine's "
                     "--name");
  }
  TANDEM_RETURN_IF_ERROR(CheckRegionName(name));
  if (!IsListenAddress(absl::GetFlag(FLAGS_listen))) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("--listen: expected HOST:PORT or none, found ",
                     Quoted(absl::GetFlag(FLAGS_listen))));
  }
  if (absl::GetFlag(FLAGS_listen) == "none" &&
      absl::GetFlag(FLAGS_socket).empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "--listen: expected HOST:PORT, since there is no --socket, "
        "found none");
  }
  return absl::OkStatus();
}

// Where programs connect, and whose.
struct Entrance {
  AllowedUsers users;
  std::vector<ListeningSocket> sockets = {};
  // Of TCP connections; nullptr: the kernel names their users.
  std::shared_ptr<grpc::ServerCredentials> tls = nullptr;
  std::string text = "";  // the addresses
};

absl::StatusOr<Entrance> OpenEntrance() {
  TANDEM_ASSIGN_OR_RETURN(
      AllowedUsers users,
      AllowedUsers::Parse(absl::GetFlag(FLAGS_allow_users)));
  Entrance entrance = {.users = std::move(users)};
  const std::string listen = absl::GetFlag(FLAGS_listen);
  if (listen != "none") {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<TcpAddress> addresses,
                            absl::GetFlag(FLAGS_allow_remote)
                                ? AddressesOf(listen)
                                : LoopbackOf(listen));
    if (const TlsFiles files = FilesOfFlags(); !files.certificate.empty()) {
      TANDEM_ASSIGN_OR_RETURN(entrance.tls, MutualTls(files));
    }
    TANDEM_ASSIGN_OR_RETURN(TcpSockets tcp, ListenOnTcp(addresses, listen));
    entrance.sockets = std::move(tcp.sockets);
    entrance.text =
        absl::StrCat(listen.substr(0, listen.rfind(':')), ":", tcp.port);
  }
  if (const std::string path = absl::GetFlag(FLAGS_socket); !path.empty()) {
    TANDEM_RETURN_IF_ERROR(RemoveStaleSocket(path));
    const mode_t usual = umask(0177);
    absl::StatusOr<ListeningSocket> socket = ListenOnUnix(path);
    umask(usual);
    if (!socket.ok()) return socket.status();
    entrance.sockets.push_back(*std::move(socket));
    absl::StrAppend(&entrance.text, entrance.text.empty() ? "" : " and ",
                    "unix:", path);
  }
  return entrance;
}

// Serve's sigtimedwait receives them. All threads inherit the mask, if none was
// made before: gRPC's first ones are made with its credentials.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : StopSignals()) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Until one of `signals`.
absl::Status Serve(Entrance entrance, const sigset_t& signals) {
  std::signal(SIGPIPE, SIG_IGN);

  Gateway gateway({.region = absl::GetFlag(FLAGS_name),
                   .release_secs = absl::ToDoubleSeconds(
                       absl::GetFlag(FLAGS_release_after))});
  const std::vector<std::unique_ptr<grpc::Service>> services =
      MakeServices(&gateway);
  const std::unique_ptr<grpc::CallbackGenericService> refusals = MakeRefusals();
  StartGrpc("tandem-gateway");
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  SetLimits(&builder);
  const std::unique_ptr<GrpcAcceptor> grpc_acceptor =
      AddAcceptor(&builder, grpc::InsecureServerCredentials());
  const std::unique_ptr<GrpcAcceptor> tls_acceptor =
      entrance.tls == nullptr ? nullptr : AddAcceptor(&builder, entrance.tls);
  for (const auto& service : services) builder.RegisterService(service.get());
  builder.RegisterCallbackGenericService(refusals.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::InternalError(
        "expected gRPC to start a server, found that it does not; next: its "
        "own lines above say why");
  }
  ConnectionAcceptor acceptor(
      std::move(entrance.sockets), std::move(entrance.users),
      {.program = "tandem-gateway",
       .take_own = HandTo(grpc_acceptor.get()),
       .take_unknown = HandTo(tls_acceptor.get()),
       .tcp_is_tls = tls_acceptor != nullptr,
       .next_of_unknown = "start tandem-gateway with --socket=PATH, and "
                          "connect to unix:PATH",
       .began =
           [&gateway](const std::string& peer) {
             gateway.connections.Begin(peer);
           },
       .ended =
           [&gateway](const std::string& peer) {
             gateway.ConnectionEnded(peer);
           }});
  std::cout << "tandem-gateway: serves engine '" << absl::GetFlag(FLAGS_name)
            << "' at " << entrance.text << std::endl;

  const timespec second = {.tv_sec = 1, .tv_nsec = 0};
  int signal = -1;
  while ((signal = sigtimedwait(&signals, nullptr, &second)) < 0) {
    gateway.slot.Tick(MonotonicNanos());
  }
  std::cerr << "tandem-gateway: " << strsignal(signal) << ", stopping\n";
  BeginStopping();
  acceptor.StopAccepting(absl::FromChrono(kStopLimit));
  server->Shutdown(std::chrono::system_clock::now() + kStopLimit);
  acceptor.Stop();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  const ProgramFlags flags("gateway/");
  if (ProgramFlags::WantHelp(words)) {
    std::cout << flags.Help(kUsage);
    return 0;
  }
  absl::Status set = flags.SetFromWords(words);
  if (set.ok() && absl::GetFlag(FLAGS_list_rpcs)) {
    PrintRpcs();
    return 0;
  }
  if (const pid_t parent = absl::GetFlag(FLAGS_parent); parent != 0) {
    EndWithParent(SIGTERM, parent);
  }
  if (set.ok()) set = CheckFlags();
  const sigset_t signals = BlockStopSignals();
  absl::StatusOr<Entrance> entrance =
      set.ok() ? OpenEntrance() : absl::StatusOr<Entrance>(set);
  if (!entrance.ok()) {
    Report(entrance.status());
    return absl::IsInvalidArgument(entrance.status()) ? kWrongCommandLine : 1;
  }
  const int code = Report(Serve(*std::move(entrance), signals));
  // Threads of gRPC may still run; _Exit runs no destructors of static objects,
  // which they might use.
  std::cout.flush();
  std::_Exit(code);
}

}  // namespace
}  // namespace tandem::gateway

int main(int argc, char** argv) { return tandem::gateway::Main(argc, argv); }
