#include "engine_adapter/services/states_service.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/quoted.h"
#include "engine_adapter/services/env_selection.h"
#include "transport/envelope.h"

namespace tandem {

std::string StatesService::Fingerprint() const {
  return absl::StrCat(schema_.task, "; ", rows_->Format(), "; ",
                      port_->Fingerprint());
}

absl::StatusOr<rpc::SaveStatesResponseT> StatesService::SaveStates(
    const rpc::SaveStatesRequestT& request) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<uint32_t> envs,
                          SelectEnvs(request.env_ids, "", schema_.num_envs));
  rpc::SaveStatesResponseT response;
  response.fingerprint = Fingerprint();
  uint64_t bytes = response.fingerprint.size();
  std::string state;
  for (const uint32_t env : envs) {
    state.clear();
    rows_->Save(env, &state);
    TANDEM_RETURN_IF_ERROR(port_->Save(env, &state));
    constexpr uint64_t kOfTable = 32;  // besides its bytes
    bytes += state.size() + kOfTable;
    TANDEM_RETURN_IF_ERROR(CheckEnvelopeBytes(
        bytes, "SaveStates: the states", "save fewer environments at a time"));
    auto saved = std::make_unique<rpc::EnvStateT>();
    saved->data.assign(state.begin(), state.end());
    response.states.push_back(std::move(saved));
  }
  return response;
}

absl::StatusOr<rpc::LoadStatesResponseT> StatesService::LoadStates(
    const rpc::LoadStatesRequestT& request) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<uint32_t> envs,
                          SelectEnvs(request.env_ids, "", schema_.num_envs));
  const auto discard = [&] {
    for (const uint32_t env : envs) {
      rows_->Discard(env);
      port_->Discard(env);
    }
  };
  discard();
  rpc::LoadStatesResponseT response;
  response.success = true;
  if (request.states.empty()) return response;
  if (const std::string own = Fingerprint(); request.fingerprint != own) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("states: expected those of an engine with ",
                                  Quoted(own), ", found those of one with ",
                                  Quoted(request.fingerprint)));
  }
  if (request.states.size() != envs.size()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("states: expected ", envs.size(),
                                  ", one for each environment, found ",
                                  request.states.size()));
  }
  // The next client starts without them, even if no reset follows.
  simulation_->NoteChange();
  for (size_t i = 0; i < envs.size(); ++i) {
    const std::vector<uint8_t>& data = request.states[i]->data;
    const absl::StatusOr<absl::string_view> rest = rows_->Stage(
        envs[i], {reinterpret_cast<const char*>(data.data()), data.size()});
    const absl::Status staged =
        rest.ok() ? port_->Stage(envs[i], *rest) : rest.status();
    if (staged.ok()) continue;
    discard();
    return MakeError(CodeOf(staged), absl::StrCat("environment ", envs[i], ": ",
                                                  staged.message()));
  }
  return response;
}

}  // namespace tandem
