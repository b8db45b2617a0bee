// tandem-gateway: serves the gRPC protocol hazel.rpc, which programs for
// LuckyEngine call, with an engine of Tandem.
#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine_adapter/gateway/gateway.h"
#include "engine_adapter/gateway/rpc_table.h"
#include "engine_adapter/gateway/services.h"
#include "engine_adapter/gateway/stopping.h"
#include "program/program_flags.h"
#include "schema/layout/error_codes.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"
#include "transport/base/quoted.h"
#include "transport/memory/region_name.h"

ABSL_FLAG(std::string, name, "", "the engine's name: its --name");
ABSL_FLAG(std::string, listen, "127.0.0.1:50051",
          "HOST:PORT for programs on this machine; port 0 takes a free one");
ABSL_FLAG(absl::Duration, release_after, absl::Seconds(60),
          "without a step for so long, the gateway releases the engine's place "
          "for a trainer");
ABSL_FLAG(bool, list_rpcs, false,
          "prints each RPC and what answers it, between tabs, and exits");

namespace tandem::gateway {
namespace {

constexpr char kUsage[] =
    "Serves an engine to programs for LuckyEngine, by gRPC.\n\n"
    "  tandem-gateway --name demo\n\n"
    "Serves until Ctrl-C or SIGTERM; the engine may come, go and come again. "
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
  for (const RpcRow& row : AllRpcs()) {
    std::cout << row.service << "/" << row.rpc << "\t" << NameOf(row.door)
              << "\n";
  }
}

absl::Status CheckFlags() {
  const std::string name = absl::GetFlag(FLAGS_name);
  if (name.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--name: expected the name of an engine, found none; "
                     "next: tandem-gateway --name NAME, with the engine's "
                     "--name");
  }
  TANDEM_RETURN_IF_ERROR(CheckRegionName(name));
  const std::string listen = absl::GetFlag(FLAGS_listen);
  const std::string host = listen.substr(0, listen.rfind(':'));
  if (host != "127.0.0.1" && host != "localhost" && host != "[::1]") {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("--listen: expected 127.0.0.1:PORT, localhost:PORT or "
                     "[::1]:PORT, which only this machine reaches, found ",
                     Quoted(listen)));
  }
  return absl::OkStatus();
}

absl::Status Serve() {
  // sigtimedwait receives them. All threads inherit the mask.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  Gateway gateway({.region = absl::GetFlag(FLAGS_name),
                   .release_secs = absl::ToDoubleSeconds(
                       absl::GetFlag(FLAGS_release_after))});
  const std::vector<std::unique_ptr<grpc::Service>> services =
      MakeServices(&gateway);
  // No grpc_shutdown: it would wait up to 10 s for a thread of gRPC. main ends
  // the process without it.
  grpc_init();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  const std::string listen = absl::GetFlag(FLAGS_listen);
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  for (const auto& service : services) builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "--listen: expected an address that no program uses, found '", listen,
        "', which gRPC cannot use; next: another port, or end the program "
        "that has it"));
  }
  std::cout << "tandem-gateway: serves engine '" << absl::GetFlag(FLAGS_name)
            << "' at " << listen.substr(0, listen.rfind(':')) << ":" << port
            << std::endl;

  const timespec second = {.tv_sec = 1, .tv_nsec = 0};
  int signal = -1;
  while ((signal = sigtimedwait(&signals, nullptr, &second)) < 0) {
    gateway.slot.ReleaseIdle(MonotonicNanos());
  }
  std::cerr << "tandem-gateway: " << strsignal(signal) << ", stopping\n";
  BeginStopping();
  server->Shutdown(std::chrono::system_clock::now() + kStopLimit);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  const ProgramFlags flags("engine_adapter/gateway/");
  if (ProgramFlags::WantHelp(words)) {
    std::cout << flags.Help(kUsage);
    return 0;
  }
  absl::Status set = flags.SetFromWords(words);
  if (set.ok() && absl::GetFlag(FLAGS_list_rpcs)) {
    PrintRpcs();
    return 0;
  }
  if (set.ok()) set = CheckFlags();
  if (!set.ok()) {
    Report(set);
    return kWrongCommandLine;
  }
  const int code = Report(Serve());
  // Threads of gRPC may still run; _Exit runs no destructors of static objects,
  // which they might use.
  std::cout.flush();
  std::_Exit(code);
}

}  // namespace
}  // namespace tandem::gateway

int main(int argc, char** argv) { return tandem::gateway::Main(argc, argv); }
