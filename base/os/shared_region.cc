#include "base/os/shared_region.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/printable.h"

namespace tandem {

absl::Status SharedRegion::NotMine(absl::string_view name, const Owner& owner,
                                   absl::string_view why) {
  return MakeError(
      ErrorCode::kAccessDenied,
      absl::StrCat("'", Printable(name), "' belongs to ", DescribeUser(owner),
                   why,
                   "; run as that user, or let the engine give its group "
                   "access (its option group_access)"));
}

absl::Status SharedRegion::CheckTrust(absl::string_view name) const {
  if (IsTrusted(owner_)) return absl::OkStatus();
  return NotMine(name, owner_,
                 ", and that user could change or truncate it while it is "
                 "mapped");
}

}  // namespace tandem
