// tandem-view: shows the runs of this machine in a browser, or records the
// scene of one into a file.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/os/stop_signals.h"
#include "program/grpc/library_log.h"
#include "program/listening_sockets.h"
#include "program/screen.h"
#include "program/tls/tls_certificate.h"
#include "viz/core/daemon_starter.h"
#include "viz/core/file_name.h"
#include "viz/web/access.h"
#include "viz/web/page_model.h"
#include "viz/web/record_scene.h"
#include "viz/web/web_options.h"
#include "viz/web/web_server.h"

namespace tandem {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadUsage = 2;
constexpr uint16_t kForwardedPort = 8900;

std::atomic<bool> stopped = false;  // by a signal

struct Listener {
  std::vector<ListeningSocket> sockets;
  Access::Endpoint kind = Access::Endpoint::kSocketFile;
  uint16_t port = 0;
  std::string host;    // for the address; of a TCP port
  std::string socket;  // path
};

absl::StatusOr<std::optional<TlsCertificate>> LoadCertificate(
    const WebOptions& options) {
  if (options.tls_cert.empty()) return std::nullopt;
  TANDEM_ASSIGN_OR_RETURN(
      TlsCertificate certificate,
      TlsCertificate::Load(options.tls_cert, options.tls_key));
  return certificate;
}

bool IsEveryAddress(absl::string_view host) {
  return host == "0.0.0.0" || host == "[::]" || host == "*";
}

// Returns the host of the printed address: one that Access accepts.
absl::StatusOr<std::string> ShownHost(
    const std::string& host, const std::optional<TlsCertificate>& certificate) {
  if (Access::IsLoopbackHost(host)) return host;
  // Without a certificate Access knows three names of this machine; others,
  // such as 127.1.2.3, would be refused.
  if (!certificate.has_value()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("--listen: expected the host localhost, "
                                  "127.0.0.1 or [::1], found '",
                                  host, "'"));
  }
  const std::vector<std::string> names = certificate->Names();
  if (names.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--tls_cert: expected a certificate with the names or "
                     "addresses of this machine (subjectAltName), found none");
  }
  if (IsEveryAddress(host)) return names.front();
  if (certificate->IsFor(host)) return host;
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("--tls_cert: expected a certificate for '", host,
                   "', found one for ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<Listener> OpenPort(
    const WebOptions& options,
    const std::optional<TlsCertificate>& certificate) {
  const std::string& listen = options.listen;
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<TcpAddress> addresses,
      options.allow_remote ? AddressesOf(listen) : LoopbackOf(listen));
  TANDEM_ASSIGN_OR_RETURN(
      std::string host,
      ShownHost(listen.substr(0, listen.rfind(':')), certificate));
  TANDEM_ASSIGN_OR_RETURN(TcpSockets tcp, ListenOnTcp(addresses, listen));
  Listener listener;
  listener.sockets = std::move(tcp.sockets);
  listener.kind = Access::Endpoint::kTcpPort;
  listener.port = tcp.port;
  listener.host = std::move(host);
  return listener;
}

absl::StatusOr<Listener> OpenSocket(std::string path) {
  if (path.empty()) {
    TANDEM_ASSIGN_OR_RETURN(path, DefaultSocketPath());
  }
  TANDEM_RETURN_IF_ERROR(RemoveStaleSocket(path));
  // The file gets mode 0600 when it is made, not afterwards.
  const mode_t before = umask(0177);
  absl::StatusOr<ListeningSocket> socket = ListenOnUnix(path);
  umask(before);
  if (!socket.ok()) return socket.status();
  Listener listener;
  listener.sockets.push_back(*std::move(socket));
  std::array<char, 4096> real;
  listener.socket =
      realpath(path.c_str(), real.data()) == nullptr ? path : real.data();
  return listener;
}

// Returns what the user does next. The address with the token is alone on its
// line.
std::string Greeting(const Listener& listener, const Access& access) {
  if (listener.kind == Access::Endpoint::kTcpPort) {
    return absl::StrCat(access.Scheme(), listener.host, ":", listener.port,
                        access.PathWithToken(), "\n");
  }
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const char* const user = std::getenv("USER");
  return absl::StrCat(
      "On your machine:\n  ssh -N -L ", kForwardedPort, ":", listener.socket,
      " ", user == nullptr ? "" : absl::StrCat(user, "@"), host.data(),
      "\nThen open there:\n  http://localhost:", kForwardedPort, "/\n");
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "tandem-view: %s\n",
               std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  const absl::StatusOr<WebOptions> options = ParseWebOptions(words);
  if (!options.ok()) return Fail(options.status(), kExitBadUsage);
  if (options->help_wanted) {
    const absl::Status printed = Print(WebHelp());
    return printed.ok() ? 0 : Fail(printed, kExitFailed);
  }
  signal(SIGPIPE, SIG_IGN);
  const absl::StatusOr<std::optional<TlsCertificate>> certificate =
      LoadCertificate(*options);
  if (!certificate.ok()) return Fail(certificate.status(), kExitFailed);
  if (options->control) {
    const absl::Status made = MakeFolder("--recordings", options->recordings);
    if (!made.ok()) return Fail(made, kExitFailed);
  }
  if (!options->save.empty()) {
    HandleStopSignals([](int) { stopped.store(true); });
    const absl::Status saved = RecordScene(*options, &stopped);
    return saved.ok() ? 0 : Fail(saved, kExitFailed);
  }
  RouteLibraryLog("tandem-view");
  if (const absl::Status started =
          StartWantedDaemon("tandem-view", options->daemon);
      !started.ok()) {
    return Fail(started, kExitFailed);
  }
  absl::StatusOr<Listener> listener = options->listen.empty()
                                          ? OpenSocket(options->socket)
                                          : OpenPort(*options, *certificate);
  if (!listener.ok()) return Fail(listener.status(), kExitFailed);
  Access::HostCheck is_certified;
  if (certificate->has_value()) {
    is_certified = [&certificate](absl::string_view host) {
      return (*certificate)->IsFor(host);
    };
  }
  const Access access(listener->kind, listener->port, is_certified);
  PageModel page_model({.control = options->control,
                        .daemon_target = options->daemon.target,
                        .recordings = options->recordings});
  const std::string greeting = Greeting(*listener, access);
  WebServer server(std::move(listener->sockets), &access, &page_model,
                   *certificate);  // from here on a signal stops it
  if (const absl::Status printed = Print(greeting); !printed.ok()) {
    return Fail(printed, kExitFailed);
  }
  server.Run();
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
