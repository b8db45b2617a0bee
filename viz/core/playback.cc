#include "viz/core/playback.h"

#include "absl/strings/str_cat.h"
#include "viz/core/quantities.h"

namespace tandem {

void Playback::Freeze(int64_t now_ns, const Freshness& freshness) {
  if (frozen()) return;
  frozen_ = {.at_ns = now_ns,
             .age_ns = freshness.AgeNsAt(now_ns).value_or(0),
             .at_least = freshness.AgeIsAtLeast()};
}

int64_t Playback::AgeNsAt(int64_t now_ns, const Freshness& freshness) const {
  return frozen() ? frozen_->age_ns + (now_ns - frozen_->at_ns)
                  : freshness.AgeNsAt(now_ns).value_or(0);
}

std::string Playback::AgeTextAt(int64_t now_ns,
                                const Freshness& freshness) const {
  const bool at_least = frozen() ? frozen_->at_least : freshness.AgeIsAtLeast();
  return absl::StrCat(at_least ? "over " : "",
                      ShortAgeText(AgeNsAt(now_ns, freshness)));
}

}  // namespace tandem
