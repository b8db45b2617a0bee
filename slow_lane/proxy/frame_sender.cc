#include "slow_lane/proxy/frame_sender.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/images/image_files.h"
#include "base/os/shared_region.h"
#include "base/printable.h"
#include "schema/layout/lrbc.h"
#include "slow_lane/proxy/wait_until.h"
#include "slow_lane/runs/limits.h"
#include "slow_lane/runs/run_token.h"
#include "slow_lane/runs/shared_memory.h"
#include "transport/frame_geometry.h"
#include "transport/region.h"

namespace tandem::slow_lane {
namespace {

using Clock = std::chrono::steady_clock;

// The minimum from one frame to the next: 30 a second. Copying and encoding
// also take at most a tenth of a core.
constexpr std::chrono::milliseconds kFramePause(33);
constexpr int kPauseOfWork = 9;
// From one question, or one search of a ring, to the next.
constexpr std::chrono::milliseconds kSearchPause(1'000);
// A frame that needs more is dropped. gRPC detects a dead network by pings.
constexpr std::chrono::seconds kCallLimit(30);
constexpr int kQuality = 80;  // of JPEG

bool IsLive(const AttachedFrames& ring) {
  return ring.writer() != AttachedFrames::Writer::kGone && !ring.Replaced();
}

}  // namespace

FrameSender::FrameSender(const DaemonLink& link, std::string run_id,
                         std::string token)
    : link_(link),
      run_id_(std::move(run_id)),
      token_(std::move(token)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void FrameSender::Run(const std::stop_token& stop) {
  v1::RelayFrameRequest request;
  request.set_run_id(run_id_);
  request.set_token(token_);
  request.set_shared_memory(SharedMemoryId());
  std::unique_ptr<v1::SlowLane::Stub> stub = link_.NewStub();
  bool wanted = false;
  Clock::time_point next;
  do {
    const Clock::time_point begin = Clock::now();
    next = begin + kFramePause;
    request.clear_frame();
    if (wanted) {
      if (!ring_.has_value()) Find();
      if (!ring_.has_value()) next = begin + kSearchPause;
      // relaxed: as at its store.
      if (!ring_.has_value() || held_.load(std::memory_order_relaxed) ||
          !Take(request.mutable_frame())) {
        continue;
      }
      const Clock::time_point taken = Clock::now();
      next = std::max(next, taken + kPauseOfWork * (taken - begin));
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    v1::RelayFrameResponse response;
    const grpc::Status result = stub->RelayFrame(&context, request, &response);
    wanted = result.ok() && response.wanted();
    if (!wanted) {
      ring_.reset();
      next = Clock::now() + kSearchPause;
    }
    if (!result.ok()) stub = link_.NewStub();
    // The numbers of both enumerations are gRPC's.
    Note(absl::Status(static_cast<absl::StatusCode>(result.error_code()),
                      result.error_message()));
  } while (WaitUntil(next, stop));
}

void FrameSender::Find() {
  if (Attach(AttachedFrames::OpenSegment(run_id_))) return;
  std::vector<SharedRegion::Listed> names = SharedRegion::List();
  std::ranges::sort(names, {}, &SharedRegion::Listed::name);
  for (const auto& [name, link] : names) {
    if (link != SharedRegion::Link::kSpare) continue;
    const absl::StatusOr<LrbcHeader> engine = PeekRegion(name);
    if (!engine.ok() || engine->flan_offset == 0 ||
        // relaxed: a private copy.
        RunTokenOf(static_cast<pid_t>(
            engine->server_pid.load(std::memory_order_relaxed))) != token_) {
      continue;
    }
    if (Attach(AttachedFrames::OpenRegion(name))) return;
  }
}

bool FrameSender::Attach(absl::StatusOr<AttachedFrames> opened) {
  if (!opened.ok() || !IsLive(*opened)) return false;
  const FrameGeometry& frames = opened->reader().geometry();
  if (uint64_t{frames.width} * frames.height > kMaxRelayedPixels) {
    Note(MakeError(
        ErrorCode::kMessageTooLarge,
        absl::StrCat("expected at most ", kMaxRelayedPixels, " pixels, found ",
                     frames.width, "x", frames.height)));
    return false;
  }
  ring_.emplace(*std::move(opened));
  return true;
}

bool FrameSender::Take(v1::RelayedFrame* into) {
  const FrameReader::Found found = ring_->reader().Next(&frame_);
  if (found != FrameReader::Found::kFrame) {
    if (found != FrameReader::Found::kNothing || !IsLive(*ring_)) ring_.reset();
    return false;
  }
  const absl::StatusOr<std::vector<uint8_t>> file =
      EncodeJpeg({.pixels = frame_.pixels,
                  .width = frame_.width,
                  .height = frame_.height,
                  .channels = frame_.channels},
                 {.quality = kQuality, .full_colour = false});
  if (!file.ok()) {
    Note(file.status());
    return false;
  }
  into->set_jpeg(file->data(), file->size());
  if (frame_.metadata.size() <= kMaxRelayedMetadata) {
    into->set_metadata(frame_.metadata);
  }
  into->set_last_reward(frame_.metrics.last_reward);
  into->set_rolling_return(frame_.metrics.rolling_return);
  into->set_step_rate_hz(frame_.metrics.step_rate_hz);
  return true;
}

void FrameSender::Note(const absl::Status& result) {
  // The proxy's own link shows whether there is a daemon.
  if (absl::IsUnavailable(result) || absl::IsDeadlineExceeded(result) ||
      absl::IsCancelled(result) || result.message() == problem_) {
    return;
  }
  problem_ = std::string(result.message());
  if (!result.ok()) {
    std::cerr << PrintableLines(absl::StrCat("its frames: ", problem_, "\n"))
              << std::flush;
  }
}

}  // namespace tandem::slow_lane
