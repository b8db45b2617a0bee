#include "viz/core/freshness.h"

namespace tandem {

absl::string_view FreshnessName(FreshnessState state) {
  constexpr std::array kNames = {"connected", "stale", "reconnecting",
                                 "fastlane-unavailable"};
  return kNames.at(static_cast<size_t>(state));
}

void Freshness::SawOldFrame(int64_t now_ns) {
  seen_ns_ = now_ns;
  new_ = false;
}

void Freshness::SawNewFrame(int64_t since_ns) {
  seen_ns_ = since_ns;
  new_ = true;
}

FreshnessState Freshness::StateAt(int64_t now_ns) const {
  switch (link_) {
    case Link::kNoRun:
      return FreshnessState::kUnavailable;
    case Link::kLost:
      return FreshnessState::kReconnecting;
    case Link::kAttached:
      break;
  }
  return new_ && *AgeNsAt(now_ns) <= kMaxLiveAgeNs ? FreshnessState::kConnected
                                                   : FreshnessState::kStale;
}

std::optional<int64_t> Freshness::AgeNsAt(int64_t now_ns) const {
  if (!seen_ns_.has_value()) return std::nullopt;
  return std::max<int64_t>(0, now_ns - *seen_ns_);
}

}  // namespace tandem
