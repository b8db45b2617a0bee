#include "viz/testing/pattern.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/images/image_grid.h"
#include "base/os/end_with_parent.h"
#include "base/os/posix/region_paths.h"
#include "base/os/shared_region.h"
#include "nlohmann/json.hpp"
#include "schema/layout/lrbc.h"
#include "transport/frame_geometry.h"
#include "transport/frame_writer.h"
#include "transport/frames/testing/region_with_frames.h"
#include "transport/owned_frame_segment.h"
#include "transport/region.h"
#include "transport/region_spec.h"

namespace tandem {
namespace {

volatile sig_atomic_t stop_wanted = 0;

std::string PathOf(const PatternRun& run) {
  if (run.kind == PatternRun::Kind::kRegion) return RegionPath(run.run);
  return RegionPath(*FrameSegmentName(run.run));
}

std::string Metadata(const PatternRun& run, uint64_t step) {
  const ImageGrid grid = ImageGrid::Of(run.tiles);
  std::vector<uint32_t> envs(run.tiles);
  std::iota(envs.begin(), envs.end(), 0);
  nlohmann::json json = {
      {"step", step},          {"envs", envs},
      {"rows", grid.rows},     {"columns", grid.columns},
      {"episodes", step / 10}, {"published_ns", MonotonicNanos()}};
  if (!run.error_text.empty()) json["error_text"] = run.error_text;
  return json.dump();
}

int Publish(const PatternRun& run, FrameWriter& writer) {
  const int64_t wait_ns = static_cast<int64_t>(1e9 / run.hz);
  const timespec wait = {wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
  for (uint64_t step = 1; !stop_wanted; ++step) {
    if (run.still_after > 0 && step > run.still_after) {
      if (run.invalidate_at_end) writer.Invalidate();
      nanosleep(&wait, nullptr);
      continue;
    }
    FillPattern(step, run.geometry, writer.Reserve());
    const double t = static_cast<double>(step);
    writer.Commit(
        {.last_reward = std::sin(t / 20),
         .rolling_return = 100 * (1 - std::exp(-t / 500)) + 5 * std::sin(t / 7),
         .step_rate_hz = 4000 + 300 * std::cos(t / 50)},
        Metadata(run, step));
    nanosleep(&wait, nullptr);
  }
  return 0;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

int PublishSegment(const PatternRun& run) {
  absl::StatusOr<OwnedFrameSegment> segment =
      OwnedFrameSegment::Create(run.run, run.geometry);
  if (!segment.ok()) return Fail(segment.status());
  return Publish(run, segment->writer());
}

int PublishForeign(const PatternRun& run) {
  const uint64_t bytes = *FrameWriter::RingBytes(run.geometry);
  const std::string path = PathOf(run);
  unlink(path.c_str());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return 1;
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 1;
  absl::StatusOr<FrameWriter> writer = FrameWriter::Create(
      {static_cast<std::byte*>(memory), bytes}, run.geometry);
  if (!writer.ok()) return Fail(writer.status());
  const int code = Publish(run, *writer);
  unlink(path.c_str());
  return code;
}

int PublishRegion(const PatternRun& run) {
  RegionSpec spec;
  spec.num_envs = std::max(1u, run.tiles);
  spec.obs_size = 4;
  spec.act_size = 2;
  spec.task = "Pattern-v0";
  spec.frames = run.geometry;
  absl::StatusOr<RegionWithFrames> region =
      RegionWithFrames::Create(run.run, spec);
  if (!region.ok()) return Fail(region.status());
  return Publish(run, region->writer());
}

}  // namespace

void FillPattern(uint64_t step, const FrameGeometry& geometry,
                 std::span<std::byte> pixels) {
  size_t at = 0;
  for (uint32_t y = 0; y < geometry.height; ++y) {
    for (uint32_t x = 0; x < geometry.width; ++x) {
      for (uint32_t channel = 0; channel < geometry.channels; ++channel) {
        pixels[at++] = std::byte{PatternAt(step, x, y, channel)};
      }
    }
  }
}

int RunPattern(const PatternRun& run) {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_wanted = 1; };
  sigaction(SIGTERM, &action, nullptr);  // Ends nanosleep.
  switch (run.kind) {
    case PatternRun::Kind::kSegment:
      return PublishSegment(run);
    case PatternRun::Kind::kForeign:
      return PublishForeign(run);
    case PatternRun::Kind::kRegion:
      break;
  }
  return PublishRegion(run);
}

Publisher::Publisher(const PatternRun& run) : run_(run) {
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ != 0) return;
  EndWithParent(SIGKILL, parent);
  _exit(RunPattern(run));
}

Publisher::~Publisher() {
  if (pid_ > 0) Kill();
  unlink(path().c_str());
  const std::string name = path().substr(RegionPath("").size());
  unlink(RegionPath(name, SharedRegion::Link::kSpare).c_str());
}

std::string Publisher::path() const { return PathOf(run_); }

void Publisher::Kill() {
  kill(pid_, SIGKILL);
  Reap();
}

void Publisher::Stop() {
  kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

void Publisher::Continue() { kill(pid_, SIGCONT); }

int Publisher::Terminate() {
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void Publisher::Reap() {
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace tandem
