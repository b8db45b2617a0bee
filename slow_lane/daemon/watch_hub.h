// WatchHub: the watchers of runs, their positions, and what each gets next.
//
// Data flow: the store's commits say how many rows a run has -> the hub reads
// what each watcher lacks from the table -> blocks -> the watcher's call.
// Nothing is queued for a watcher but one block: a slow one is only further
// behind in the table, and slows no other.
// Ownership: the daemon's; one thread (EventLoop) does all of it. Calls come
// from any thread and never block.
//
//   WatchHub hub(*EventReader::Open("tandem.db"));
//   hub.Committed(run_id, last);             // the store's listener
//   hub.Add(id, watch, ended, &sink);        // a call began
//   hub.Sent(id);                            // its block is written
//   hub.Remove(id);                          // it was cancelled: sink.End
//
// Credits, for calls that have a ControlStream beside them (same key, same
// run): 200 steps at first, each step sent takes one, grant adds. At 10 left,
// and more steps to send, the control stream gets STARVED (pause: true), at the
// next grant that lifts it above 10 RESUMED (resume: true). Without a
// ControlStream only HTTP/2's flow control slows a watcher.

#ifndef TANDEM_SLOW_LANE_DAEMON_WATCH_HUB_H_
#define TANDEM_SLOW_LANE_DAEMON_WATCH_HUB_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/event_loop.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/run_table.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// A call that events are sent to. Its functions are called on the hub's thread.
class EventSink {
 public:
  // Answered by WatchHub::Sent once all of it is written. One at a time.
  virtual void Send(std::shared_ptr<const v1::EventBatch> block) = 0;
  // The last call: the sink may then go.
  virtual void End(const absl::Status& status) = 0;

 protected:
  ~EventSink() = default;
};

// A call that changes of runs' states are sent to.
class UpdateSink {
 public:
  // As EventSink::Send, in the order of update_seq. The first of a watch from
  // the start has all runs as they are.
  virtual void Send(std::vector<RunRow> runs) = 0;
  virtual void End(const absl::Status& status) = 0;

 protected:
  ~UpdateSink() = default;
};

// A ControlStream's way back.
class ControlSink {
 public:
  virtual void Send(const gymgui::trainer::ControlEvent& event) = 0;

 protected:
  ~ControlSink() = default;
};

class WatchHub {
 public:
  static constexpr uint32_t kFirstCredits = 200;
  static constexpr uint32_t kStarvedCredits = 10;

  using Id = uint64_t;
  struct Watch {
    std::string run_id;
    Numbers since;       // of each stream; streams not wanted have the highest
    bool follow = true;  // false: end at what is durable now
    std::string control_key;  // of the connection, or that the client chose
  };

  // `reader` of the store's file.
  explicit WatchHub(std::unique_ptr<EventReader> reader);

  // A run has rows up to `last`; it has ended, and no more will come.
  void Committed(const std::string& run_id, const Numbers& last);
  void RunEnded(const std::string& run_id);
  // A change of state with this number is durable.
  void Updated(uint64_t update_seq);

  Id NewId() { return ++last_id_; }
  // `run_ended`: now, when the call began. `sink` lives until its End, which
  // may come before this returns.
  void Add(Id id, Watch watch, bool run_ended, EventSink* sink);
  // `since` 0: from the start.
  void AddUpdates(Id id, uint64_t since, UpdateSink* sink);
  void Sent(Id id);
  void Remove(Id id);

  // Messages of a ControlStream, in any order; the first makes it known. `sink`
  // lives until RemoveControl has called `gone`.
  void Grant(const std::string& key, const std::string& run_id,
             uint32_t credits, ControlSink* sink);
  void LimitRate(const std::string& key, const std::string& run_id, uint32_t hz,
                 ControlSink* sink);
  void RemoveControl(ControlSink* sink, EventLoop::Task gone);

  // Reads on the hub's thread and its connection.
  void Read(absl::AnyInvocable<void(EventReader&)> task);

  uint32_t watchers() const { return watchers_; }

  // Ends every watch, also those that come later, with UNAVAILABLE.
  void EndAll();
  // Ends the thread. No call is under way any more.
  void Stop() { loop_.Stop(); }

 private:
  struct Run {
    Numbers last;
    bool ended = false;
    uint32_t watchers = 0;
  };
  using ControlName = std::pair<std::string, std::string>;  // key, run_id
  struct Control {
    ControlSink* sink = nullptr;
    uint32_t credits = kFirstCredits;
    bool starved = false;
    uint32_t max_rate_hz = 0;  // 0: no cap
    double allowance = 0;      // steps that the cap allows at `counted_ns`
    int64_t counted_ns = 0;
  };
  struct Watcher {
    Watch watch;
    EventSink* sink = nullptr;
    std::optional<Numbers> until;  // of one that does not follow
    bool sending = false;
    bool timer = false;
  };
  struct UpdateWatcher {
    uint64_t since = 0;
    UpdateSink* sink = nullptr;
    bool from_start = false;  // all runs come first
    bool sending = false;
  };

  // The rest runs on the loop's thread.
  void Advance(Id id);
  void AdvanceUpdates(Id id);
  void AdvanceRun(const std::string& run_id);
  void End(Id id, const absl::Status& status);
  // How many steps a watcher may have now; sets a timer if it is the rate that
  // forbids.
  uint64_t StepsAllowed(Id id, Watcher* watcher);
  void CountSteps(const Watcher& watcher, uint64_t steps);

  const std::unique_ptr<EventReader> reader_;
  std::atomic<Id> last_id_ = 0;
  // For people, and depends on nothing: relaxed.
  std::atomic<uint32_t> watchers_ = 0;
  bool ended_ = false;
  std::map<std::string, Run> runs_;  // those that are watched
  std::map<Id, Watcher> events_;
  std::map<Id, UpdateWatcher> updates_;
  std::map<ControlName, Control> controls_;
  EventLoop loop_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_WATCH_HUB_H_
