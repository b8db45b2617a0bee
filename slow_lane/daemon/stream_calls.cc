#include "slow_lane/daemon/stream_calls.h"

#include <algorithm>

namespace tandem::slow_lane {

using gymgui::trainer::RunRecord;
using gymgui::trainer::WatchRunsRequest;

std::string ControlKey(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto named = metadata.find("watcher-id");
  return named == metadata.end()
             ? context.peer()
             : std::string(named->second.data(), named->second.size());
}

UpdateStream::UpdateStream(const WatchRunsRequest& request, WatchHub* hub)
    : states_([&] {
        std::vector<RunState> states;
        for (const int state : request.status_filter()) {
          states.push_back(static_cast<RunState>(state));
        }
        return states;
      }()),
      hub_(hub),
      id_(hub->NewId()) {
  hub->AddUpdates(id_, request.since_seq(), this);
}

void UpdateStream::SendRuns(std::vector<RunRow> runs) { WriteAll(runs); }

void UpdateStream::Send(std::vector<RunUpdate> updates) { WriteAll(updates); }

template <typename Rows>
void UpdateStream::WriteAll(const Rows& rows) {
  auto kept = std::make_shared<std::vector<RunRecord>>();
  for (const auto& row : rows) {
    if (states_.empty() || std::find(states_.begin(), states_.end(),
                                     row.status) != states_.end()) {
      kept->push_back(ToRecord(row));
    }
  }
  if (kept->empty()) return BlockWritten();
  std::vector<const RunRecord*> messages;
  for (const RunRecord& record : *kept) messages.push_back(&record);
  Write(std::move(kept), std::move(messages));
}

}  // namespace tandem::slow_lane
