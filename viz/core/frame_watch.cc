#include "viz/core/frame_watch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "base/printable.h"
#include "base/quoted.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kMostTiles = 4096;
constexpr size_t kMaxErrorBytes = 512;

std::optional<int64_t> Integer(const nlohmann::json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  // get<int64_t> wraps values above its range.
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t{kMaxMetadataInteger}) {
    return std::nullopt;
  }
  const int64_t integer = value.get<int64_t>();
  if (integer < -kMaxMetadataInteger) return std::nullopt;
  return integer;
}

std::optional<int64_t> Integer(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nullopt : Integer(*found);
}

constexpr int64_t kRetryNs = 100'000'000;

bool Exists(absl::string_view name) {
  return SharedRegion::At(name).has_value();
}

// Whether the ring is in use. The viewer does not attach again to ended rings.
bool Serves(absl::StatusOr<AttachedFrames>& opened) {
  return opened.ok() && !opened->reader().Invalidated() &&
         opened->writer() != AttachedFrames::Writer::kGone;
}

}  // namespace

FrameMetadata ParseFrameMetadata(absl::string_view json) {
  FrameMetadata metadata;
  if (json.empty() || json.size() > kMaxTextBytes) return metadata;
  const nlohmann::json object =
      nlohmann::json::parse(json.begin(), json.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (!object.is_object()) return metadata;
  metadata.step = Integer(object, "step");
  metadata.episodes = Integer(object, "episodes");
  const auto length = object.find("episode_length");
  if (length != object.end() && length->is_number()) {
    metadata.episode_length = length->get<double>();
  }
  const auto error = object.find("error_text");
  if (error != object.end() && error->is_string()) {
    metadata.error =
        PrintableHead(error->get_ref<const std::string&>(), kMaxErrorBytes);
  }
  const auto envs = object.find("envs");
  if (envs == object.end() || !envs->is_array() || envs->size() > kMostTiles) {
    return metadata;
  }
  for (const nlohmann::json& env : *envs) {
    const std::optional<int64_t> index = Integer(env);
    if (!index.has_value()) {
      metadata.envs.clear();
      break;
    }
    metadata.envs.push_back(*index);
  }
  const size_t tiles = metadata.envs.size();
  const int64_t rows = Integer(object, "rows").value_or(0);
  const int64_t columns = Integer(object, "columns").value_or(0);
  constexpr auto kMost = int64_t{kMostTiles};
  if (tiles > 0 && rows >= 1 && rows <= kMost && columns >= 1 &&
      columns <= kMost && static_cast<size_t>(rows * columns) >= tiles) {
    metadata.grid = {static_cast<uint32_t>(rows),
                     static_cast<uint32_t>(columns)};
    metadata.tiles = static_cast<uint32_t>(tiles);
  }
  return metadata;
}

FrameWatch::FrameWatch(std::string run)
    : run_(std::move(run)), reason_("not searched yet") {}

bool FrameWatch::Poll(int64_t now_ns) {
  const int64_t since_ns = polled_ns_.value_or(now_ns);
  polled_ns_ = now_ns;
  const bool attached_now = !attached_.has_value();
  if (attached_now && !Attach(now_ns)) return false;

  const FrameReader::Found found = attached_->reader().Next(&next_frame_);
  const bool is_new = found == FrameReader::Found::kFrame;
  if (is_new) {
    std::swap(frame_, next_frame_);
    dropped_ = dropped_before_ + attached_->reader().dropped();
    TakeFrame(now_ns, attached_now, since_ns);
  }
  if (found == FrameReader::Found::kInvalidated) {
    Lose("the writer closed its ring");
  } else if (found == FrameReader::Found::kBroken) {
    Lose("the ring is invalid");
  } else if (attached_->writer() == AttachedFrames::Writer::kGone) {
    Lose("the writer is gone");
  } else if (attached_->Replaced()) {
    Lose("another ring has taken the name");
  }
  return is_new;
}

bool FrameWatch::Attach(int64_t now_ns) {
  if (now_ns < next_attach_ns_) return false;
  next_attach_ns_ = now_ns + kRetryNs;
  absl::StatusOr<AttachedFrames> opened = AttachedFrames::OpenSegment(run_);
  const absl::StatusOr<std::string> segment = FrameSegmentName(run_);
  bool is_there = segment.ok() && Exists(*segment);
  bool serves = Serves(opened);
  if (!serves && CheckRegionName(run_).ok() && Exists(run_)) {
    is_there = true;
    opened = AttachedFrames::OpenRegion(run_);
    serves = Serves(opened);
  }
  if (const uint64_t bytes =
          serves ? opened->reader().geometry().FrameBytes() : 0;
      bytes > kMostFrameBytes) {
    freshness_.SetLink(Freshness::Link::kNoRun);
    reason_ =
        absl::StrCat("expected frames of at most ", kMostFrameBytes >> 20,
                     " MiB, found ", bytes >> 20, " MiB; publish smaller ones");
    return false;
  }
  if (serves) {
    attached_.emplace(*std::move(opened));
    was_attached_ = true;
    reason_.clear();
    freshness_.SetLink(Freshness::Link::kAttached);
    return true;
  }
  // A name that exists without a valid ring may get one later.
  const bool may_come =
      is_there && (was_attached_ || opened.ok() ||
                   CodeOf(opened.status()) == ErrorCode::kNotReady);
  freshness_.SetLink(may_come ? Freshness::Link::kLost
                              : Freshness::Link::kNoRun);
  if (opened.ok()) {
    reason_ = opened->reader().Invalidated() ? "the writer closed its ring"
                                             : "the writer is gone";
  } else if (is_there) {
    reason_ = std::string(opened.status().message());
  } else {
    reason_ = absl::StrCat("nothing named ", Quoted(run_), " runs here");
  }
  return false;
}

void FrameWatch::Lose(absl::string_view reason) {
  dropped_before_ = dropped_;
  attached_.reset();
  freshness_.SetLink(Freshness::Link::kLost);
  reason_ = std::string(reason);
}

void FrameWatch::Detach() {
  if (attached_.has_value()) Lose("not polled");
  next_attach_ns_ = 0;
}

void FrameWatch::TakeFrame(int64_t now_ns, bool found_on_attaching,
                           int64_t since_ns) {
  ++frames_seen_;
  const std::optional<int64_t> step_before =
      found_on_attaching ? std::nullopt : metadata_.step;
  metadata_ = ParseFrameMetadata(frame_.metadata);
  CountEpisodes();
  if (found_on_attaching) {
    freshness_.SawOldFrame(now_ns);
    return;  // the time of its numbers is unknown
  }
  ++new_frames_;
  // An engine without steps publishes its last image again once a second. Such
  // a repetition is no new frame of the run.
  if (!step_before.has_value() || metadata_.step != step_before) {
    freshness_.SawNewFrame(since_ns);
  }
  rate_.Add(now_ns);
  histories_.rewards.Add(now_ns, frame_.metrics.last_reward);
  histories_.returns.Add(now_ns, frame_.metrics.rolling_return);
  histories_.step_rates.Add(now_ns, frame_.metrics.step_rate_hz);
  if (metadata_.episode_length.has_value()) {
    histories_.episode_lengths.Add(now_ns, *metadata_.episode_length);
  }
}

void FrameWatch::CountEpisodes() {
  if (!metadata_.episodes.has_value()) return;
  const int64_t now = std::max<int64_t>(0, *metadata_.episodes);
  if (episodes_now_.has_value() && now < *episodes_now_) {
    // The writer restarted its count. The limit prevents an overflow if an
    // invalid writer does so in each frame.
    episodes_before_ =
        std::min(kMaxMetadataInteger, episodes_before_ + *episodes_now_);
  }
  episodes_now_ = now;
}

std::optional<int64_t> FrameWatch::episodes() const {
  if (!episodes_now_.has_value()) return std::nullopt;
  return episodes_before_ + *episodes_now_;
}

}  // namespace tandem
