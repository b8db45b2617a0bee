#include "transport/frames/frame_segment_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schema/layout/flan.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"

namespace tandem {

absl::StatusOr<std::string> FrameSegmentName(absl::string_view run_id) {
  constexpr size_t kLongest = 184;  // the longest region name, less the prefix
  if (run_id.empty() || run_id.size() > kLongest ||
      run_id.find('\0') != absl::string_view::npos) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("run id: expected 1 to ", kLongest,
                     " bytes without NUL, found ", run_id.size(), " ('",
                     Printable(run_id.substr(0, kLongest)), "')"));
  }
  std::string name = absl::StrCat(kFlanSegmentPrefix, run_id);
  std::ranges::replace(name, '/', '_');
  return name;
}

}  // namespace tandem
