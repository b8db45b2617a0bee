// tandem_serve: the main function of an engine server in C.
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/printable.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/server_main.h"
#include "sdk/call_result.h"
#include "sdk/foreign_engine.h"
#include "sdk/open_engines.h"
#include "sdk/tandem.h"

namespace tandem {
namespace {

absl::Status CheckServer(const tandem_server& server) {
  if (server.prepare == nullptr) return MissingArgument("server->prepare");
  if (server.work == nullptr && server.loop == nullptr) {
    return MissingArgument("server->work, and server->loop");
  }
  if (server.flags == nullptr && server.flag_count > 0) {
    return MissingArgument("server->flags");
  }
  for (const tandem_flag& flag : std::span(server.flags, server.flag_count)) {
    if (flag.name == nullptr || flag.help == nullptr || flag.value == nullptr) {
      return MissingArgument("server->flags: name, help or value");
    }
    const absl::string_view name = flag.name;
    if (name.empty() || absl::StrContains(name, '=') || name == "help" ||
        absl::FindCommandLineFlag(name) != nullptr) {
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat("server->flags: expected a name that no "
                                    "standard flag has, found '",
                                    Printable(name), "'"));
    }
  }
  return absl::OkStatus();
}

std::string UsageOf(const tandem_server& server) {
  std::string usage = server.usage == nullptr ? "" : server.usage;
  absl::StrAppend(&usage, "\n\nFlags of this engine:");
  for (const tandem_flag& flag : std::span(server.flags, server.flag_count)) {
    absl::StrAppendFormat(&usage, "\n  --%s (%s); default: %g", flag.name,
                          flag.help, *flag.value);
  }
  return usage;
}

absl::StatusOr<std::unique_ptr<ForeignEngine>> Prepared(
    const tandem_server& server, const ServerOptions& flags) {
  tandem_engine_options options = {};
  options.struct_size = sizeof(options);
  options.num_envs = flags.num_envs;
  const char* const error = server.prepare(server.user, &options);
  if (error != nullptr) return MakeError(ErrorCode::kInvalidArgument, error);
  options.num_envs = flags.num_envs;
  tandem_callbacks callbacks = {};
  callbacks.user = server.user;
  callbacks.work = server.work;
  return ForeignEngine::Make(options, callbacks);
}

absl::Status Loop(const tandem_server& server, ForeignEngine* engine,
                  EngineHost* host) {
  engine->SetHost(host);
  // The host ends next.
  const absl::Cleanup close = [engine] { engine->Close(); };
  if (server.loop == nullptr) return engine->Run();
  tandem_engine* handle = nullptr;
  // Not owned: the server's.
  TANDEM_RETURN_IF_ERROR(OpenEngines::Get().Open(
      std::shared_ptr<ForeignEngine>(std::shared_ptr<void>(), engine),
      &handle));
  struct Closer {
    tandem_engine* handle;
    // Waits for calls of other threads: the server destroys the engine next.
    ~Closer() {
      const OpenEngines::Use use = OpenEngines::Get().Enter(handle);
      if (use) OpenEngines::CloseAndWait(use);
    }
  } const closer{handle};
  server.loop(server.user, handle);
  return engine->opening();
}

int Serve(int argc, char** argv, const tandem_server* server) {
  tandem_server read;
  absl::Status status = ReadStruct(server, "server", &read);
  if (status.ok()) status = CheckServer(read);
  if (!status.ok()) {
    LogLine(absl::StrCat("error: ", NameOf(CodeOf(status)), ": ",
                         status.message()));
    return kExitBadUsage;
  }
  std::vector<OwnFlag> own;
  for (const tandem_flag& flag : std::span(read.flags, read.flag_count)) {
    own.push_back({.name = flag.name, .value = flag.value});
  }
  ForeignEngine* engine = nullptr;  // RunTickedServer owns it
  return RunTickedServer(
      argc, argv, UsageOf(read),
      [&](const ServerOptions& flags)
          -> absl::StatusOr<std::unique_ptr<EngineBase>> {
        TANDEM_ASSIGN_OR_RETURN(auto made, Prepared(read, flags));
        engine = made.get();
        return std::unique_ptr<EngineBase>(std::move(made));
      },
      [&](EngineHost* host) { return Loop(read, engine, host); }, own);
}

}  // namespace
}  // namespace tandem

extern "C" int tandem_serve(int argc, char** argv,
                            const tandem_server* server) {
  return tandem::Serve(argc, argv, server);
}
