#include "slow_lane/ctl/export_command.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "program/screen.h"
#include "slow_lane/ctl/events_csv.h"
#include "slow_lane/ctl/export_output.h"
#include "slow_lane/ctl/text_table.h"

namespace tandem::slow_lane {
namespace {

using What = ExportCommand::What;

constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kBetweenProgress = absl::Milliseconds(100);

// A line on standard error that is written over, where that is a terminal.
class Progress {
 public:
  explicit Progress(uint64_t total)
      : total_(total), shown_(TakesEscapes(STDERR_FILENO)) {}
  ~Progress() {
    if (any_) std::fprintf(stderr, "\r%s", kClearRestOfLine);
  }
  void Show(uint64_t rows) {
    const absl::Time now = absl::Now();
    if (!shown_ || now - last_ < kBetweenProgress) return;
    last_ = now;
    any_ = true;
    std::fprintf(stderr, "\r%s of %s events%s", CountText(rows).c_str(),
                 CountText(total_).c_str(), kClearRestOfLine);
  }

 private:
  const uint64_t total_;
  const bool shown_;
  bool any_ = false;
  absl::Time last_ = absl::InfinitePast();
};

// What to ask for, and how many rows that will be.
std::pair<v1::StreamEventsRequest, uint64_t> RequestFor(
    const ExportCommand& command, const v1::RunDescription& run) {
  v1::StreamEventsRequest request = NoEventsOf(command.run_id);
  switch (command.what) {
    case What::kSteps:
      request.set_since_step(0);
      return {request, run.steps()};
    case What::kEpisodes:
      request.set_since_episode(0);
      return {request, run.episodes()};
    case What::kLifecycle:
      request.set_since_lifecycle(0);
      return {request, run.lifecycle()};
  }
  return {request, 0};
}

int RowsOf(const v1::EventBatch& batch) {
  return batch.steps_size() + batch.episodes_size() + batch.lifecycle_size();
}

}  // namespace

absl::Status ExportEvents(Connection* daemon, const ExportCommand& command) {
  const auto described = daemon->DescribeRun(command.run_id);
  if (!described.ok()) return described.status();
  const auto [request, total] = RequestFor(command, described->runs(0));
  absl::StatusOr<ExportOutput> output = ExportOutput::Open(command.out);
  if (!output.ok()) return output.status();
  absl::Status written = output->Write(CsvHeader(command.what));
  uint64_t rows = 0;
  std::string csv;
  {
    Progress progress(total);
    const absl::Status streamed = daemon->StreamEvents(
        request, kPatience, [&](const v1::EventBatch& batch) {
          csv.clear();
          AppendCsv(batch, command.what, &csv);
          if (written.ok()) written = output->Write(csv);
          rows += static_cast<uint64_t>(RowsOf(batch));
          progress.Show(rows);
          return written.ok();
        });
    if (!streamed.ok()) return streamed;
  }
  return written.ok() ? output->Close() : written;
}

}  // namespace tandem::slow_lane
