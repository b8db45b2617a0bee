#include "engine_adapter/conformance/engine_facts.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_under_test.h"
#include "engine_adapter/conformance/server_process.h"
#include "engine_adapter/conformance/suite_arguments.h"
#include "nlohmann/json.hpp"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/rpc_methods.h"
#include "transport/client_side.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr int kRefusedArguments = 2;  // an engine's exit code for them

EngineFacts& Mutable() {
  static EngineFacts& facts = *new EngineFacts;
  return facts;
}

std::string Describe(const StepArrays& arrays, FieldRole role) {
  return absl::StrJoin(FieldsOf(arrays, role), ", ",
                       [](std::string* out, const FieldArray& field) {
                         absl::StrAppend(out, field.path,
                                         field.path.empty() ? "" : " ",
                                         NameOf(field.type), "[",
                                         absl::StrJoin(field.shape, ", "), "]");
                       });
}

void Set(Capability capability, bool has, std::string why_not = "") {
  std::optional<std::string>& lack =
      Mutable().lacks[static_cast<size_t>(capability)];
  lack.reset();
  if (!has) lack = std::move(why_not);
}

// Returns why the engine's frames show nothing, by its own words; "": they show
// something, or the engine has failed.
std::string WhyNotDrawn(EngineUnderTest* engine) {
  const absl::StatusOr<Frame> frame = engine->RequestFrame();
  if (!frame.ok()) return "";  // the rules fail for the same reason
  const auto about = nlohmann::json::parse(frame->metadata, nullptr,
                                           /*allow_exceptions=*/false);
  return about.is_object() ? about.value("error_text", "") : "";
}

// Starts the engine with one more flag. Returns why it does not serve, or, with
// the flag of frames, why these show nothing; "": all is well, or the engine
// dies or hangs with this flag, so that its rules fail.
std::string WhyNotWith(const std::string& flag, EngineUnderTest* engine) {
  const RuleWatchdog watchdog;
  engine->Start({flag});
  const absl::Status attached = engine->Attach();
  if (RuleWatchdog::HasKilled()) return "nothing served within --rule_secs";
  if (attached.ok()) return flag == kFramesFlag ? WhyNotDrawn(engine) : "";
  const std::string text = engine->server->LastLines();
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(text), '\n');
  return lines.back().empty() ? "it says nothing on stderr"
                              : std::string(lines.back());
}

absl::Status ProbeMethods(EngineUnderTest* engine) {
  EngineFacts& facts = Mutable();
  TANDEM_ASSIGN_OR_RETURN(const RpcMessage listed,
                          engine->Call(EmptyCall(rpc::MethodId::GetServices)));
  const auto* const list = listed.envelope().payload_as_GetServicesResponse();
  if (list == nullptr) {
    return MakeError(ErrorCode::kBrokenPeer,
                     "expected a GetServicesResponse as the answer to "
                     "GetServices, found another payload");
  }
  rpc::GetServicesResponseT services;
  list->UnPackTo(&services);
  for (const auto& service : services.services) {
    if (!service->enabled) continue;
    facts.services.push_back(service->name);
    facts.methods.insert(facts.methods.end(), service->methods.begin(),
                         service->methods.end());
  }
  Set(Capability::kCamera, facts.Serves(rpc::MethodId::GetCameraFrame));
  Set(Capability::kScene, facts.Serves(rpc::MethodId::WatchScene));
  Set(Capability::kStreams, !facts.NumberStreams().empty());
  Set(Capability::kOwnMethods, facts.Serves(rpc::MethodId::CallOwn));
  Set(Capability::kStates, false);
  if (facts.Serves(rpc::MethodId::SaveStates)) {
    const absl::Status saved =
        engine->Call(EmptyCall(rpc::MethodId::SaveStates)).status();
    Set(Capability::kStates, CodeOf(saved) != ErrorCode::kUnsupported,
        std::string(saved.message()));
  }
  Set(Capability::kContracts, false);
  if (!facts.Serves(rpc::MethodId::ResetAgent)) return absl::OkStatus();
  rpc::ResetAgentRequestT request;
  request.simulation_contract = std::make_unique<rpc::SimulationContractT>();
  request.at_next_reset = true;
  const absl::Status taken =
      engine->Call(rpc::MethodId::ResetAgent, std::move(request)).status();
  Set(Capability::kContracts, CodeOf(taken) != ErrorCode::kUnsupported);
  return absl::OkStatus();
}

}  // namespace

bool EngineFacts::Serves(rpc::MethodId method) const {
  return std::ranges::find(methods, method) != methods.end();
}

std::vector<rpc::MethodId> EngineFacts::NumberStreams() const {
  std::vector<rpc::MethodId> streams;
  std::ranges::copy_if(
      methods, std::back_inserter(streams), [](rpc::MethodId method) {
        return IsStream(method) && method != rpc::MethodId::WatchScene &&
               PayloadsOf(method).answer != rpc::Payload::ImageFrame;
      });
  return streams;
}

std::string EngineFacts::Text() const {
  std::string text = absl::StrCat("engine    ", about, "\n");
  absl::StrAppend(&text, "services  ",
                  services.empty() ? "none" : absl::StrJoin(services, ", "),
                  "\n");
  for (size_t i = 0; i < kCapabilities; ++i) {
    absl::StrAppend(
        &text, lacks[i] ? "without   " : "with      ", kCapabilityNames[i],
        lacks[i].value_or("").empty() ? "" : ": ", lacks[i].value_or(""), "\n");
  }
  return text;
}

absl::Status EngineFacts::Probe() {
  const std::string& limit = SuiteArguments::Get().limit_flag;
  EngineUnderTest engine;
  std::optional<RuleWatchdog> watchdog(std::in_place);
  engine.Start();
  if (const absl::Status status = engine.Attach(); !status.ok()) {
    const bool refused = engine.server->HasEnded() &&
                         engine.server->ExitCode() == kRefusedArguments;
    return MakeError(refused ? ErrorCode::kInvalidArgument : CodeOf(status),
                     absl::StrCat("ENGINE: ", status.message()));
  }
  const LrbcHeader plan = engine.client->plan();
  const StepArrays arrays = engine.client->arrays();
  Mutable().about = absl::StrCat(
      TaskOf(plan), ", observations ", Describe(arrays, FieldRole::kObs),
      ", actions ", Describe(arrays, FieldRole::kAction));
  Mutable().own_images = !arrays.images.empty();
  Set(Capability::kFields, !arrays.fields.empty());
  // Memory that the engine has exported itself has no observations.
  Set(Capability::kGpu,
      HasGpuArrays(plan) &&
          plan.gpu_obs_mode == static_cast<uint8_t>(GpuMode::kCudaIpc));
  Set(Capability::kHostObservations,
      !HasGpuArrays(plan) || (plan.gpu_flags & kGpuFillsCpu) != 0);
  TANDEM_RETURN_IF_ERROR(ProbeMethods(&engine));
  watchdog.reset();

  Set(Capability::kLimit, !limit.empty());
  if (!limit.empty()) {
    const std::string why =
        WhyNotWith(absl::StrCat("--", limit, "=4"), &engine);
    if (!why.empty()) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("--limit_flag: expected a flag of the engine that "
                       "truncates each episode after N steps, found '",
                       limit, "', with which the engine does not serve: ", why,
                       "\nNext: give the name of that flag, or leave "
                       "--limit_flag out: the rules about ends of episodes "
                       "are then skipped"));
    }
  }
  std::string why = WhyNotWith(kFramesFlag, &engine);
  Set(Capability::kFrames, why.empty(), why);
  why = Mutable().own_images ? "" : WhyNotWith(kImagesFlag, &engine);
  Set(Capability::kImages, why.empty(), why);
  return absl::OkStatus();
}

const EngineFacts& EngineFacts::Get() { return Mutable(); }

}  // namespace tandem
