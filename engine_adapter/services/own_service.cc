#include "engine_adapter/services/own_service.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/quoted.h"
#include "transport/envelope.h"

namespace tandem {
namespace {

absl::Status TooLarge(size_t bytes) {
  return MakeError(
      ErrorCode::kMessageTooLarge,
      absl::StrCat("CallOwn: expected an answer of at most ", kMaxEnvelopeBytes,
                   " bytes, found ", bytes, "; ask for less"));
}

}  // namespace

void OwnService::CallOwn(const rpc::CallOwnRequestT& request,
                         RpcAnswer<rpc::CallOwnResponseT> answer) {
  const auto found =
      std::ranges::find(methods_, request.name, &OwnMethod::name);
  if (found == methods_.end()) {
    return answer(MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("name: expected a method of this engine: ",
                     absl::StrJoin(methods_, ", ",
                                   [](std::string* out, const OwnMethod& each) {
                                     out->append(each.name);
                                   }),
                     "; found ", Quoted(request.name))));
  }
  // Whatever the method changes, the next client starts without it.
  simulation_->NoteChange();
  port_->CallOwn(static_cast<size_t>(found - methods_.begin()), request.data,
                 answer.wanted(),
                 [answer](absl::StatusOr<std::span<const uint8_t>> data) {
                   if (!data.ok()) return answer(data.status());
                   if (data->size() > kMaxEnvelopeBytes) {
                     return answer(TooLarge(data->size()));
                   }
                   rpc::CallOwnResponseT response;
                   response.data.assign(data->begin(), data->end());
                   answer(std::move(response));
                 });
}

}  // namespace tandem
