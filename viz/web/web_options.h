// WebOptions: tandem-view's command line.
//
// Data flow: argv -> absl flags -> checked options; --help lists the flags.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "viz/core/daemon_starter.h"

namespace tandem {

struct WebOptions {
  bool help_wanted = false;   // true: nothing else was checked
  std::string listen;         // HOST:PORT; "": the socket
  bool allow_remote = false;  // whether `listen` may be any address
  std::string tls_cert;       // path; "": no encryption
  std::string tls_key;        // path; "" with tls_cert ""
  std::string socket;         // path; "": DefaultSocketPath
  bool control = false;
  DaemonOptions daemon;
  std::string recordings = ".";  // folder
  // In place of the page: records the scene of `run` into this file; "": not.
  std::string save;
  std::string run;
  double seconds = 10;
  uint32_t envs = 16;  // the first ones
};

// Errors: as ProgramFlags::SetFromWords; also kInvalidArgument for
// contradictory flags, and for a remote address without encryption.
absl::StatusOr<WebOptions> ParseWebOptions(
    std::span<const absl::string_view> words);

std::string WebHelp();

// Returns a path in $XDG_RUNTIME_DIR, or else in a folder of /tmp with mode
// 0700, which this call makes. Error: the folder is another user's, or open to
// others.
absl::StatusOr<std::string> DefaultSocketPath();

}  // namespace tandem
