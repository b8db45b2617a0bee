#include "viz/viewer/snapshot_job.h"

#include <QCoreApplication>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/printable.h"

namespace tandem {
namespace {

constexpr int kPollMs = 10;
// The time of two scans, after which the list of runs shows which ones move.
constexpr int64_t kListNs = 1'300'000'000;

}  // namespace

SnapshotJob::SnapshotJob(const ViewerOptions& options, Viewer* viewer)
    : options_(options), viewer_(viewer), begin_ns_(MonotonicNanos()) {
  QObject::connect(&timer_, &QTimer::timeout, [this] { Poll(); });
  timer_.start(kPollMs);
}

void SnapshotJob::Poll() {
  const int64_t waited_ns = MonotonicNanos() - begin_ns_;
  const RunTab* missing = nullptr;
  for (const RunTab* tab : viewer_->run_tabs()) {
    if (tab->consumer().watch().new_frames() <
        static_cast<uint64_t>(options_.after)) {
      missing = tab;
    }
  }
  // Without tabs: either the list of runs was requested, which needs no frames,
  // or the user has closed the tabs.
  const bool has_tabs = !viewer_->run_tabs().isEmpty();
  if (!has_tabs && !options_.runs.empty()) {
    Fail(
        "--snapshot: expected the tabs of --run, found them closed; leave one "
        "open until the image is saved");
  } else if (has_tabs ? missing == nullptr : waited_ns >= kListNs) {
    Save();
  } else if (missing != nullptr &&
             static_cast<double>(waited_ns) > options_.timeout_secs * 1e9) {
    const FrameWatch& watch = missing->consumer().watch();
    Fail(absl::StrFormat(
        "%s: expected %d new frames within %g s, found %d (%s%s%s); start the "
        "run, check its name, or give it time (--timeout)",
        Printable(missing->runId().toStdString()), options_.after,
        options_.timeout_secs, watch.new_frames(),
        missing->status().toStdString(), watch.reason().empty() ? "" : ": ",
        watch.reason()));
  }
}

void SnapshotJob::Save() {
  timer_.stop();
  if (viewer_->SaveWindow(QString::fromStdString(options_.snapshot))) {
    QCoreApplication::exit(0);
    return;
  }
  Fail(absl::StrCat("--snapshot: expected a file that can be written, found '",
                    options_.snapshot, "'; is its folder there, and yours?"));
}

void SnapshotJob::Fail(const std::string& text) {
  timer_.stop();
  std::fprintf(stderr, "viewer: %s\n", text.c_str());
  QCoreApplication::exit(1);
}

}  // namespace tandem
