#include "viz/core/engine_control.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/quoted.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/region.h"

namespace tandem {
namespace {

template <typename Request>
PackedCall CallOf(rpc::MethodId method, Request request) {
  rpc::EnvelopeT call;
  call.method = method;
  call.payload.Set(std::move(request));
  return call;
}

// Calls, and returns the answer, or its refusal as an error.
template <typename Response, typename Request>
absl::StatusOr<RpcMessage> CallForAnswer(RpcClient* calls, rpc::MethodId method,
                                         Request request) {
  TANDEM_ASSIGN_OR_RETURN(
      RpcMessage answer,
      calls->Call(CallOf(method, std::move(request)),
                  Deadline::After(EngineControl::kTimeoutSecs)));
  const Response* response = answer.envelope().template payload_as<Response>();
  if (response != nullptr && response->success()) return answer;
  const auto* text = response == nullptr ? nullptr : response->message();
  return MakeError(
      ErrorCode::kEngineFailed,
      absl::StrCat(rpc::EnumNameMethodId(method),
                   ": expected that the engine does it, found that it refused",
                   text == nullptr ? "" : absl::StrCat(": ", text->str())));
}

// The same without the answer.
template <typename Response, typename Request>
absl::Status CallAndCheck(RpcClient* calls, rpc::MethodId method,
                          Request request) {
  return CallForAnswer<Response>(calls, method, std::move(request)).status();
}

// Of an answer: an engine that knows no factor runs at 1.
float FactorOf(float answered) { return answered == 0 ? 1 : answered; }

}  // namespace

std::vector<std::string> EngineControl::ModeNames() {
  std::vector<std::string> names;
  for (const rpc::SimulationMode mode : rpc::EnumValuesSimulationMode()) {
    names.push_back(absl::AsciiStrToLower(rpc::EnumNameSimulationMode(mode)));
  }
  return names;
}

absl::StatusOr<EngineControl> EngineControl::Attach(absl::string_view region,
                                                    absl::string_view label) {
  // The engine was there a moment ago: a later one is not waited for.
  TANDEM_RETURN_IF_ERROR(PeekRegion(region).status());
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<AttendantSide> side,
      AttendantSide::Attach(
          region, {.label = std::string(label), .timeout_secs = kTimeoutSecs}));
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<RpcClient> calls,
                          RpcClient::Create(side.get(), {}));
  return EngineControl(std::move(side), std::move(calls));
}

absl::Status EngineControl::SwitchService(absl::string_view service, bool on) {
  rpc::SetServiceRequestT request;
  request.name = std::string(service);
  request.enabled = on;
  return CallAndCheck<rpc::SetServiceResponse>(
      calls_.get(), rpc::MethodId::SetService, std::move(request));
}

absl::Status EngineControl::SetPaused(bool paused) {
  rpc::SetPausedRequestT request;
  request.paused = paused;
  return CallAndCheck<rpc::SetPausedResponse>(
      calls_.get(), rpc::MethodId::SetPaused, std::move(request));
}

absl::Status EngineControl::SingleStep() {
  rpc::SingleStepRequestT request;
  request.steps = 1;
  return CallAndCheck<rpc::SingleStepResponse>(
      calls_.get(), rpc::MethodId::SingleStep, std::move(request));
}

absl::Status EngineControl::SetMode(absl::string_view mode,
                                    double realtime_factor) {
  const std::vector<std::string> names = ModeNames();
  const auto found = absl::c_find(names, mode);
  if (found == names.end()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("mode: expected ", absl::StrJoin(names, ", "),
                                  ", found ", Quoted(mode)));
  }
  rpc::SetSimulationModeRequestT request;
  request.mode = rpc::EnumValuesSimulationMode()[static_cast<size_t>(
      found - names.begin())];
  request.realtime_factor = static_cast<float>(realtime_factor);
  const bool has_factor = request.mode == rpc::SimulationMode::REALTIME;
  const float wanted = request.realtime_factor;
  TANDEM_ASSIGN_OR_RETURN(
      const RpcMessage answer,
      CallForAnswer<rpc::SetSimulationModeResponse>(
          calls_.get(), rpc::MethodId::SetSimulationMode, std::move(request)));
  const float found_factor =
      FactorOf(answer.envelope()
                   .payload_as_SetSimulationModeResponse()
                   ->realtime_factor());
  if (has_factor && found_factor != wanted) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("mode: expected an engine that runs at ", wanted,
                     " simulated seconds a second, found one that runs at ",
                     found_factor));
  }
  return absl::OkStatus();
}

absl::StatusOr<EngineControl::Mode> EngineControl::ReadMode() {
  TANDEM_ASSIGN_OR_RETURN(const RpcMessage answer,
                          calls_->Call(CallOf(rpc::MethodId::GetSimulationMode,
                                              rpc::GetSimulationModeRequestT()),
                                       Deadline::After(kTimeoutSecs)));
  const auto* response =
      answer.envelope().payload_as_GetSimulationModeResponse();
  if (response == nullptr) {
    return MakeError(ErrorCode::kBrokenPeer,
                     "GetSimulationMode: expected its response, found another "
                     "message");
  }
  return Mode{.mode = absl::AsciiStrToLower(
                  rpc::EnumNameSimulationMode(response->mode())),
              .paused = response->paused(),
              .realtime_factor = double{FactorOf(response->realtime_factor())}};
}

}  // namespace tandem
