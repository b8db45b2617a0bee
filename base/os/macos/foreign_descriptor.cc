#include "base/os/foreign_descriptor.h"

#include "base/error.h"

namespace tandem {

absl::StatusOr<UniqueFd> TakeDescriptor(uint32_t, uint32_t,
                                        const SharedRegion::Id&) {
  return MakeError(ErrorCode::kUnsupported,
                   "that macOS has no arrays on a GPU here; next: use Linux");
}

}  // namespace tandem
