#include "viz/web/web_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "program/program_flags.h"
#include "program/tls/tls_flags.h"

ABSL_FLAG(std::string, listen, "",
          "HOST:PORT of this machine, such as 127.0.0.1:8900; port 0: a free "
          "port; empty: a Unix socket");
ABSL_FLAG(bool, allow_remote, false,
          "true: --listen may name an address that other machines reach; needs "
          "--tls_cert and --tls_key");
ABSL_FLAG(std::string, tls_cert, "",
          "PATH of a certificate (PEM) for the host of --listen: the page is "
          "then served by HTTPS only");
ABSL_FLAG(std::string, tls_key, "", "PATH of the certificate's key (PEM)");
ABSL_FLAG(std::string, socket, "",
          "PATH of the Unix socket; empty: tandem-view.sock in "
          "$XDG_RUNTIME_DIR, or else in /tmp/tandem-view-UID");
ABSL_FLAG(bool, control, false,
          "true: the page may switch services, pause engines, record runs, and "
          "submit, pause and cancel runs of the daemon");
ABSL_FLAG(std::string, recordings, tandem::WebOptions().recordings,
          "FOLDER: where recordings, which need --control, are written; made "
          "if it isn't there");

ABSL_FLAG(std::string, save, "",
          "FILE.html or FILE.glb: records the 3D scene of --run into it, and "
          "serves no page");
ABSL_FLAG(std::string, run, "", "NAME of the engine for --save");
ABSL_FLAG(double, seconds, tandem::WebOptions().seconds,
          "SECONDS that --save records");
ABSL_FLAG(uint32_t, envs, tandem::WebOptions().envs,
          "NUMBER of environments that --save records, the first ones; a GLB "
          "has one");

namespace tandem {
namespace {

constexpr absl::string_view kUsage =
    R"(Usage: tandem-view [flags]

Shows everything that runs on this machine in a browser: live frames, returns,
episodes, steps, processes, and the daemon's runs. It only reads, except with
--control. No run waits for it.

Without --listen it serves a Unix socket, which only this user can open, and
prints the ssh command that makes the page reachable from another machine:

  tandem-view                            on the machine with the runs
  ssh -N -L 8900:SOCKET USER@MACHINE     on yours; the first one prints it
  http://localhost:8900/                 in a browser on yours

With --listen it serves a TCP port of this machine. Every user of the machine
reaches such a port, so the printed address has a token:

  tandem-view --listen=127.0.0.1:8900

With --allow_remote other machines reach it, by HTTPS only:

  tandem-view --listen=0.0.0.0:8900 --allow_remote --tls_cert=cert.pem
      --tls_key=key.pem

With --save it records the 3D scene of a running engine, until the time is over
or Ctrl-C: a page that opens from disk, or a GLB with an animation:

  tandem-view --run=demo --save=demo.html --seconds=10

Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 failed, 2 wrong command line.)";

constexpr double kMostSeconds = 600;  // SceneWatch keeps no more

const ProgramFlags& Flags() {
  static const ProgramFlags flags("viz/");
  return flags;
}

}  // namespace

absl::StatusOr<WebOptions> ParseWebOptions(
    std::span<const absl::string_view> words) {
  WebOptions options;
  options.help_wanted = ProgramFlags::WantHelp(words);
  if (options.help_wanted) return options;
  TANDEM_RETURN_IF_ERROR(Flags().SetFromWords(words));
  options.listen = absl::GetFlag(FLAGS_listen);
  options.allow_remote = absl::GetFlag(FLAGS_allow_remote);
  options.tls_cert = absl::GetFlag(FLAGS_tls_cert);
  options.tls_key = absl::GetFlag(FLAGS_tls_key);
  options.socket = absl::GetFlag(FLAGS_socket);
  options.control = absl::GetFlag(FLAGS_control);
  options.recordings = absl::GetFlag(FLAGS_recordings);
  options.save = absl::GetFlag(FLAGS_save);
  options.run = absl::GetFlag(FLAGS_run);
  options.seconds = absl::GetFlag(FLAGS_seconds);
  options.envs = absl::GetFlag(FLAGS_envs);
  if (options.save.empty() != options.run.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected both --save and --run, found one of them");
  }
  if (!(options.seconds > 0 && options.seconds <= kMostSeconds)) {
    return ProgramFlags::Refuse(absl::GetFlagReflectionHandle(FLAGS_seconds));
  }
  if (options.envs < 1) {
    return ProgramFlags::Refuse(absl::GetFlagReflectionHandle(FLAGS_envs));
  }
  TANDEM_ASSIGN_OR_RETURN(options.daemon,
                          DaemonOptionsOfFlags(options.control));
  if (!options.listen.empty() && !options.socket.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected --listen or --socket, found both");
  }
  TANDEM_RETURN_IF_ERROR(
      CheckTlsFlags({.files = {.certificate = options.tls_cert,
                               .key = options.tls_key,
                               .authorities = ""},
                     .listens = !options.listen.empty(),
                     .allow_remote = options.allow_remote}));
  if (!options.listen.empty() &&
      options.listen.find(':') == std::string::npos) {
    return ProgramFlags::Refuse(absl::GetFlagReflectionHandle(FLAGS_listen));
  }
  return options;
}

std::string WebHelp() { return Flags().Help(kUsage); }

absl::StatusOr<std::string> DefaultSocketPath() {
  constexpr absl::string_view kFile = "tandem-view.sock";
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/' && access(runtime, W_OK) == 0) {
    return absl::StrCat(runtime, "/", kFile);
  }
  const std::string folder = absl::StrCat("/tmp/tandem-view-", geteuid());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return MakeSystemError("mkdir", folder, errno);
  }
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0) {
    return MakeSystemError("lstat", folder, errno);
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 077) != 0) {
    return MakeError(ErrorCode::kAccessDenied,
                     absl::StrCat("expected a folder of this user with mode "
                                  "0700, found another owner or mode; next: "
                                  "--socket=PATH elsewhere: ",
                                  folder));
  }
  return absl::StrCat(folder, "/", kFile);
}

}  // namespace tandem
