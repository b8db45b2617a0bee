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
                   const absl::Status fits = CheckEnvelopeBytes(
                       data->size(), "CallOwn: the answer", "ask for less");
                   if (!fits.ok()) return answer(fits);
                   rpc::CallOwnResponseT response;
                   response.data.assign(data->begin(), data->end());
                   answer(std::move(response));
                 });
}

}  // namespace tandem
