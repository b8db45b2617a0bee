// SupervisorHost: the supervisor of a region whose environments are simulated
// by worker processes. It admits clients, answers RPCs of the client and of
// attendants, and publishes frames.
//
// Data flow: what clients, attendants and workers do -> Next -> the caller;
// calls -> the services; a pause holds the workers.
// Ownership: the supervisor's process owns it; one thread calls it.
// docs/protocol.md, "Workers", is the specification.
//
//   auto host = SupervisorHost::Create("demo", spec);
//   ... start the workers, with (*host)->fd() ...
//   (*host)->ResetWorkers();
//   for (;;) switch ((*host)->Next(Deadline::After(1))) {
//     case SupervisorEvent::kWorkersReady: (*host)->Open(); break;
//     ...
//   }

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "transport/frame_geometry.h"
#include "transport/region_spec.h"
#include "transport/worker_side.h"

namespace tandem {

// What a live scene of environments in workers needs; empty memory: none.
struct WorkersSceneSpec {
  std::span<std::byte> memory;  // host/workers_scene.h has its layout
  uint32_t nodes = 0;           // of the largest model
  std::string model_file;       // its path; the workers write models into it
  std::string program;          // tandem-engine's path
};

// Its services are those that need no port of an engine: the schema, pauses,
// and the live scene. All else gets kUnsupported; so do steps and resets by
// RPCs, since the region has fields.
//
//  state      entered by          legal calls
//  prepared   Create              ResetWorkers once, Next until kWorkersReady,
//                                 then Open
//  waiting    Open, other events  all but ResetWorkers, Open
//  stopped    StopWorkers         Next, WorkerText, End
class SupervisorHost {
 public:
  // `spec` has workers and fields; the region gets RPC rings and slots for
  // attendants, too. The memory of `scene` must outlive this object. Errors:
  //  - kInvalidArgument: the name, or the spec.
  //  - kAlreadyAttached: a live engine has the name.
  //  - kOutOfSharedMemory, kAccessDenied.
  static absl::StatusOr<std::unique_ptr<SupervisorHost>> Create(
      absl::string_view name, RegionSpec spec, WorkersSceneSpec scene = {});
  SupervisorHost(const SupervisorHost&) = delete;
  SupervisorHost& operator=(const SupervisorHost&) = delete;
  // Removes the region.
  ~SupervisorHost();

  // Orders all workers to reset their environments.
  void ResetWorkers();
  // Gives the region its name: clients may come. kAlreadyAttached: a live
  // engine has taken the name.
  absl::Status Open();

  // Waits for the next event; admits clients and serves all callers. It returns
  // kTimedOut for these events, also before the deadline. At kFrameWanted, call
  // PublishFrame with a frame of the current state, then AnswerFrame.
  SupervisorEvent Next(Deadline deadline);

  // Makes Next return kInput while `fd`, such as an epoll(7) descriptor, is
  // readable; -1: none. The caller closes it, after another WatchInput. Next
  // looks at least every 10 ms, at once within 20 ms after an exchange, and
  // when a process rings the engine's doorbell: ClientSide::WakeEngine.
  void WatchInput(int fd);

  // Orders all workers to read a message of the caller's, between two
  // exchanges.
  void MessageWorkers();
  // Legal after kWorkersAnswered. Returns the number of exchanges and lanes
  // that had ended when the workers read that message.
  uint64_t answered_at() const;

  // Orders all workers to end. No other order follows. The caller awaits the
  // ends of their processes. Without effect while an order is not acknowledged;
  // then the workers end with this object.
  void StopWorkers();

  // After kWorkerDied.
  uint32_t dead_worker() const;
  // The process of this worker has ended: makes its slot free for another,
  // which continues where it stopped. Call it before the other process starts.
  // False: a process still has the slot.
  bool ReplaceWorker(uint32_t worker);
  // "worker 2 (pid 4711, environments 4 to 7), stepping environment 5 for 1.20
  // s", for people.
  std::string WorkerText(uint32_t worker) const;
  // Tells the client why the region will end: its error then has this text.
  void End(ErrorCode code, absl::string_view text);

  // Steps of environments since birth, for display.
  uint64_t steps() const;
  // Of the region's file, for workers.
  int fd() const;

  // Whether a viewer reads the region's frames; false also without frames. One
  // system call.
  bool FramesWatched() const;
  // Copies a frame into the region's ring. Legal if the spec has frames of this
  // size.
  void PublishFrame(std::span<const std::byte> frame,
                    const FrameMetrics& metrics, absl::string_view metadata);
  // The newest frame answers the client's last request.
  void AnswerFrame();

 private:
  struct Parts;  // supervisor_host.cc

  explicit SupervisorHost(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
