#include "engine_adapter/host/gateway_process.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/os/current_user.h"
#include "base/os/utf8_path.h"
#include "base/quoted.h"

namespace tandem {
namespace {

constexpr char kVariable[] = "TANDEM_GATEWAY";
constexpr int kRefusedCommandLine = 2;

// In a wheel the program is beside the engine's server; in a build tree it is
// in the folder of its package. An engine in Python is a Python program.
absl::StatusOr<std::string> FindProgram() {
  std::vector<std::string> places;
  if (const std::string named = EnvironmentVariable(kVariable);
      !named.empty()) {
    places.push_back(named);
  } else {
    const auto folder = Utf8Path(ProgramPath()).parent_path();
    places.push_back((folder / "tandem-gateway").string());
    places.push_back(
        (folder.parent_path().parent_path() / "gateway/tandem-gateway")
            .string());
  }
  for (const std::string& place : places) {
    if (MayRun(place)) return place;
  }
  return MakeError(
      ErrorCode::kUnsupported,
      absl::StrCat(
          "--grpc: expected the program tandem-gateway, found none at ",
          absl::StrJoin(places, ", "), "; next: set ", kVariable,
          " to its path (Windows has none: use Linux, or WSL 2)"));
}

}  // namespace

absl::StatusOr<GatewayProcess> GatewayProcess::Start(
    const std::string& listen, const std::string& region) {
  TANDEM_ASSIGN_OR_RETURN(const std::string program, FindProgram());
  TANDEM_ASSIGN_OR_RETURN(
      ProcessHandle process,
      ProcessHandle::Start({program, absl::StrCat("--name=", region),
                            absl::StrCat("--listen=", listen),
                            absl::StrCat("--parent=", ProcessId())}));
  std::string line = process.ReadFirstLine();
  if (!line.empty()) return GatewayProcess(std::move(process), std::move(line));
  const ProcessEnd end = process.Stop(ProcessHandle::kStopSecs);
  const bool refused = end.exited && end.number == kRefusedCommandLine;
  return MakeError(
      refused ? ErrorCode::kInvalidArgument : ErrorCode::kEngineFailed,
      absl::StrCat("--grpc: expected that tandem-gateway listens at ",
                   Quoted(listen), ", found that it ",
                   end.exited ? "exited with " : "ended by signal ", end.number,
                   "; its own line above says why"));
}

}  // namespace tandem
