#include "slow_lane/daemon/worker_protocol.h"

#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/quoted.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RegisterWorkerRequest;

constexpr char kProtocol[] = "MOSAIC/1.0";
// 0: the worker names none.
constexpr uint32_t kSchemaVersion = 1;

bool IsNumber(absl::string_view text) {
  return !text.empty() && absl::c_all_of(text, [](char letter) {
    return absl::ascii_isdigit(static_cast<unsigned char>(letter));
  });
}

}  // namespace

absl::Status CheckVersions(const RegisterWorkerRequest& request) {
  absl::string_view version = request.proto_version();
  if (!version.empty() &&
      !(absl::ConsumePrefix(&version, "MOSAIC/1.") && IsNumber(version))) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected the protocol MOSAIC/1.x, as this daemon's ",
                     kProtocol, ", found ", Quoted(request.proto_version()),
                     "; use a daemon of the worker's version"));
  }
  if (request.schema_version() > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected events of schema version ", kSchemaVersion,
        ", which this daemon knows, found ", request.schema_version(),
        "; use a daemon of the worker's version"));
  }
  return absl::OkStatus();
}

v1::RegisteredWorker ToWorker(const RegisterWorkerRequest& request) {
  v1::RegisteredWorker worker;
  worker.set_worker_id(request.worker_id());
  worker.set_worker_kind(request.worker_kind());
  worker.set_proto_version(request.proto_version());
  worker.set_schema_id(request.schema_id());
  worker.set_schema_version(request.schema_version());
  worker.set_supports_pause(request.supports_pause());
  worker.set_supports_checkpoint(request.supports_checkpoint());
  return worker;
}

std::string AcceptedVersion(const RegisterWorkerRequest& request) {
  return request.proto_version().empty() ? kProtocol : request.proto_version();
}

}  // namespace tandem::slow_lane
