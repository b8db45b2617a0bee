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
      id_(hub->NewId()),
      since_(request.since_seq()) {
  if (since_ != 0) {
    added_ = true;
    hub->AddUpdates(id_, since_, this);
    return;
  }
  // As the table has them, not the supervisor, who is ahead of it: a state and
  // its number belong together.
  hub->Read([this](EventReader& reader) {
    const absl::StatusOr<std::vector<RunRow>> rows =
        LoadRuns(reader.database());
    if (!rows.ok()) return FinishWith(rows.status());
    std::vector<RunRecord> records;
    for (const RunRow& row : *rows) records.push_back(ToRecord(row));
    // In the order of their numbers: whoever is cut off in the midst of them
    // goes on from the last that it saw.
    std::sort(records.begin(), records.end(),
              [](const RunRecord& one, const RunRecord& other) {
                return one.seq_id() < other.seq_id();
              });
    if (!records.empty()) since_ = records.back().seq_id();
    if (!WriteRecords(std::move(records))) BlockWritten();
  });
}

void UpdateStream::Send(std::vector<RunUpdate> updates) {
  std::vector<RunRecord> records;
  for (const RunUpdate& update : updates) records.push_back(ToRecord(update));
  if (!WriteRecords(std::move(records))) BlockWritten();
}

bool UpdateStream::WriteRecords(std::vector<RunRecord> records) {
  auto kept = std::make_shared<std::vector<RunRecord>>();
  for (RunRecord& record : records) {
    if (states_.empty() || std::find(states_.begin(), states_.end(),
                                     record.status()) != states_.end()) {
      kept->push_back(std::move(record));
    }
  }
  if (kept->empty()) return false;
  std::vector<const RunRecord*> messages;
  for (const RunRecord& record : *kept) messages.push_back(&record);
  Write(std::move(kept), std::move(messages));
  return true;
}

void UpdateStream::BlockWritten() {
  if (added_) return hub_->Sent(id_);
  added_ = true;
  WatchHub* const hub = hub_;
  const WatchHub::Id id = id_;
  const auto gone = gone_;
  hub->AddUpdates(id, since_, this);
  // relaxed: as in EventStream.
  if (gone->load(std::memory_order_relaxed)) hub->Remove(id);
}

void UpdateStream::Gone() {
  // relaxed: as in EventStream.
  gone_->store(true, std::memory_order_relaxed);
  // Not known to the hub yet: whoever adds it sees that it is gone.
  hub_->Remove(id_);
}

}  // namespace tandem::slow_lane
