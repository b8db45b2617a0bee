// WatchHub: the watchers of runs, their positions, and their next events.
//
// Data flow: the store's commits give the number of a run's rows -> the hub
// reads the missing rows of each watcher from the table -> blocks -> the
// watcher's call. Only one block is queued for each watcher. So a slow watcher
// is only at an earlier position in the table, and delays no other.
// Ownership: the daemon owns it; one thread (EventLoop) does all work. Any
// thread may call it; no call blocks.
//
//   WatchHub hub(*EventReader::Open("tandem.db"));
//   hub.Committed(run_id, last);             // the store's listener
//   hub.Add(id, watch, ended, &sink);        // a call began
//   hub.Sent(id);                            // its block is written
//   hub.Remove(id);                          // after a cancellation: sink.End
//
// slow_lane/docs/slow_lane.md describes the credits of calls with a
// ControlStream (same key, same run). Without one only HTTP/2's flow control
// slows a watcher.

#pragma once

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
#include "program/grpc/event_loop.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/run_table.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// A call that receives events. The hub's thread calls its functions.
class EventSink {
 public:
  // The call answers with WatchHub::Sent after writing all of it. One block at
  // a time.
  virtual void Send(std::shared_ptr<const v1::EventBatch> block) = 0;
  // The last call; after it the sink may be destroyed.
  virtual void End(const absl::Status& status) = 0;

 protected:
  ~EventSink() = default;
};

// A call that receives changes of runs' states.
class UpdateSink {
 public:
  // As EventSink::Send, in the order of update_seq. For a watch from the start,
  // the first call has all runs in their current state.
  virtual void Send(std::vector<RunRow> runs) = 0;
  virtual void End(const absl::Status& status) = 0;

 protected:
  ~UpdateSink() = default;
};

// The messages from the hub to a ControlStream.
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
    Numbers since;            // of each stream; the highest to omit a stream
    bool follow = true;       // false: end after the rows durable now
    std::string control_key;  // the connection's, or the client's choice
  };

  // `reader` reads the store's file.
  explicit WatchHub(std::unique_ptr<EventReader> reader);

  // A run has rows up to `last`. RunEnded: it has ended, and no more rows
  // follow.
  void Committed(const std::string& run_id, const Numbers& last);
  void RunEnded(const std::string& run_id);
  // A change of state with this number is durable.
  void Updated(uint64_t update_seq);

  Id NewId() { return ++last_id_; }
  // `run_ended`: at the time of the call. `sink` must exist until its End,
  // which may be called before this returns.
  void Add(Id id, Watch watch, bool run_ended, EventSink* sink);
  // `since` 0: from the start.
  void AddUpdates(Id id, uint64_t since, UpdateSink* sink);
  void Sent(Id id);
  void Remove(Id id);

  // Messages of a ControlStream, in any order; the first registers it. `sink`
  // must exist until RemoveControl has called `gone`.
  void Grant(const std::string& key, const std::string& run_id,
             uint32_t credits, ControlSink* sink);
  void LimitRate(const std::string& key, const std::string& run_id, uint32_t hz,
                 ControlSink* sink);
  void RemoveControl(ControlSink* sink, EventLoop::Task gone);

  // The number of a run's ControlStreams that are STARVED. Only for tasks of
  // Read.
  uint32_t StarvedControls(const std::string& run_id) const;

  // Runs `task` on the hub's thread, with its connection.
  void Read(absl::AnyInvocable<void(EventReader&)> task);

  uint32_t watchers() const { return watchers_; }

  // Ends every watch, also later ones, with UNAVAILABLE.
  void EndAll();
  // Ends the thread. No call may be in progress any more.
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
    double allowance = 0;      // events that max_rate_hz allows at `counted_ns`
    int64_t counted_ns = 0;
  };
  struct Watcher {
    Watch watch;
    EventSink* sink = nullptr;
    std::optional<Numbers> until;  // if it does not follow
    bool sending = false;
    bool timer = false;
  };
  struct UpdateWatcher {
    uint64_t since = 0;
    UpdateSink* sink = nullptr;
    bool from_start = false;  // it gets all runs first
    bool sending = false;
  };

  // The loop's thread runs the rest.
  void Advance(Id id);
  void AdvanceUpdates(Id id);
  void AdvanceRun(const std::string& run_id);
  void End(Id id, const absl::Status& status);
  // Returns the number of steps or scalars that a watcher may have now. If the
  // rate limits it, sets a timer.
  uint64_t EventsAllowed(Id id, Watcher* watcher);
  void CountEvents(const Watcher& watcher, uint64_t events);

  const std::unique_ptr<EventReader> reader_;
  std::atomic<Id> last_id_ = 0;
  // A number for display; it publishes no other data.
  std::atomic<uint32_t> watchers_ = 0;
  bool ended_ = false;
  std::map<std::string, Run> runs_;  // runs with watchers
  std::map<Id, Watcher> events_;
  std::map<Id, UpdateWatcher> updates_;
  std::map<ControlName, Control> controls_;
  EventLoop loop_;
};

}  // namespace tandem::slow_lane
