// The common parts of the tests that kill or freeze the processes of a region
// with workers.
//
// Data flow: CreateSide -> Supervise, in the supervisor; AttachWorker in each
// worker -> CountingWorker.
//
//   const std::unique_ptr<SupervisorSide> side = CreateSide(name_);
//   const int handle = side->region().memory().handle();
//   Victim worker([=] { AttachWorker(handle, 0)->Serve(); });

#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "tests/faults/fault_test.h"
#include "transport/session/supervisor_side.h"
#include "transport/session/testing/worker_rig.h"
#include "transport/worker_side.h"

namespace tandem {

inline constexpr uint32_t kEnvs = 4;
inline constexpr uint32_t kWorkers = 2;

inline std::vector<float> Actions(float action) {
  return std::vector<float>(kEnvs, action);
}

inline std::unique_ptr<CountingWorker> AttachWorker(int fd, uint32_t worker) {
  absl::StatusOr<WorkerSide> side = WorkerSide::Attach(fd, worker, {});
  if (!side.ok()) {
    std::fprintf(stderr, "%s\n", side.status().ToString().c_str());
    _exit(97);
  }
  return std::make_unique<CountingWorker>(*std::move(side));
}

// Serves until `stops`. A worker that died is replaced by the process that
// waits for `standby`; without one, the region ends.
inline void Supervise(std::unique_ptr<SupervisorSide>& side,
                      SharedFlag* standby, const std::function<bool()>& stops) {
  while (!stops()) {
    switch (side->Next(Deadline::After(0.002))) {
      case SupervisorEvent::kClientArrived:
        side->AcknowledgeAttach(absl::OkStatus());
        break;
      case SupervisorEvent::kWorkerDied: {
        const uint32_t worker = side->dead_worker();
        if (standby == nullptr) {
          side->End(ErrorCode::kEngineFailed,
                    absl::StrCat(side->WorkerText(worker), ", died"));
          side.reset();
          return;
        }
        if (side->ReplaceWorker(worker)) standby->Set(true);
        break;
      }
      default:
        break;
    }
  }
}

inline std::unique_ptr<SupervisorSide> CreateSide(const std::string& name) {
  absl::StatusOr<SupervisorSide> side =
      SupervisorSide::Create(name, WorkerSpec(kEnvs, kWorkers), {});
  if (!side.ok()) {
    std::fprintf(stderr, "%s\n", side.status().ToString().c_str());
    std::abort();
  }
  return std::make_unique<SupervisorSide>(*std::move(side));
}

}  // namespace tandem
