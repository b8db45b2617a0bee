#include "engine_adapter/supervisor_host.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/frames/copy_turn.h"
#include "engine_adapter/host/callers.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/host/simulation.h"
#include "engine_adapter/host/workers_scene.h"
#include "engine_adapter/scene/live_scene.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/frame_writer.h"
#include "transport/session/supervisor_side.h"

namespace tandem {
namespace {

constexpr double kCopyShare = 0.1;     // of the workers' time, at most
constexpr double kOrderSecs = 0.0005;  // that an order takes beside the copies

class WorkersEngine final : public EngineBase {
 public:
  explicit WorkersEngine(const RegionSpec& spec)
      : schema_{.task = spec.task,
                .num_envs = spec.num_envs,
                .obs_size = spec.obs_size,
                .act_size = spec.act_size,
                .fields = spec.fields} {}
  const EngineSchema& schema() const override { return schema_; }

 private:
  const EngineSchema schema_;
};

}  // namespace

struct SupervisorHost::Parts {
  Parts(const RegionSpec& spec, SupervisorSide opened,
        const WorkersSceneSpec& scene_spec)
      : engine(spec),
        side(std::move(opened)),
        runner(&side.arrays()),
        simulation(&engine, &side, &runner, rpc::SimulationMode::FAST, [] {}),
        poses(scene_spec.memory.empty()
                  ? nullptr
                  : std::make_unique<WorkersScene>(
                        scene_spec.memory, spec.num_envs, scene_spec.nodes,
                        scene_spec.model_file, scene_spec.program)),
        scene(poses.get(), spec.num_envs, /*has_rewards=*/true,
              {.name = [this] { return side.region().name(); },
               .wake_step_thread = [this] { side.WakeStepThread(); },
               .has_own_rewards = [] { return false; },
               .watched = [](bool) {}}),
        callers({}, &engine, &simulation, &side, &scene,
                [](absl::string_view) {}) {}

  void ServeScene(SupervisorEvent event);

  WorkersEngine engine;
  SupervisorSide side;
  ExchangeRunner runner;  // has no work: the workers have it
  Simulation simulation;
  const std::unique_ptr<WorkersScene> poses;  // nullptr: there are none
  LiveScene scene;
  Callers callers;  // its streams watch the scene
  std::optional<FrameWriter> frames;
  uint64_t steps = 0;        // that the scene knows of
  bool are_copied = false;   // the environments that the scene asked for
  int64_t may_ask_ns = 0;    // from when on it may ask again
  bool are_stopped = false;  // the workers
};

// Orders copies when the scene thread waits for them, and hands them over when
// the workers have made them.
void SupervisorHost::Parts::ServeScene(SupervisorEvent event) {
  if (!scene.IsWatched() || are_stopped) {
    if (poses) poses->Forget();
    return;
  }
  if (event == SupervisorEvent::kWorkersAnswered) {
    are_copied = poses->HasCopied();
  }
  if (std::exchange(steps, side.worker_steps()) != steps) scene.NoteNews();
  if (!scene.IsAsked()) return;
  const std::span<const uint32_t> envs = scene.envs();
  if (!std::ranges::equal(poses->asked(), envs)) {
    if (MonotonicNanos() < may_ask_ns) return;
    are_copied = false;
    poses->Ask(envs);
    side.MessageWorkers();
  } else if (are_copied) {
    scene.Serve(side.answered_at());
    poses->Forget();
    const double cost_secs = poses->seconds() + kOrderSecs;
    may_ask_ns = Deadline::After(cost_secs * (1 / kCopyShare - 1)).at_ns();
  }
}

absl::StatusOr<std::unique_ptr<SupervisorHost>> SupervisorHost::Create(
    absl::string_view name, RegionSpec spec, WorkersSceneSpec scene) {
  spec.commands = true;
  spec.attendants = true;
  TANDEM_ASSIGN_OR_RETURN(auto side, SupervisorSide::Create(name, spec, {}));
  auto parts = std::make_unique<Parts>(spec, std::move(side), scene);
  const OwnedRegion& region = parts->side.region();
  if (!region.frame_ring().empty()) {
    TANDEM_ASSIGN_OR_RETURN(
        parts->frames,
        FrameWriter::Create(region.frame_ring(), region.frame_geometry()));
  }
  return std::unique_ptr<SupervisorHost>(new SupervisorHost(std::move(parts)));
}

SupervisorHost::SupervisorHost(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}
SupervisorHost::~SupervisorHost() = default;

SupervisorEvent SupervisorHost::Next(Deadline deadline) {
  SupervisorSide& side = parts_->side;
  Simulation& simulation = parts_->simulation;
  Callers& callers = parts_->callers;
  if (const auto due_ns = callers.DueNs()) {
    deadline = Deadline::At(std::min(deadline.at_ns(), *due_ns));
  }
  if (parts_->scene.IsWatched()) {
    deadline = Deadline::At(
        std::min(deadline.at_ns(), MonotonicNanos() + kNextExchangeNs));
  }
  const SupervisorEvent event = side.Next(deadline);
  parts_->ServeScene(event);
  switch (event) {
    case SupervisorEvent::kClientArrived:
      // Before the new client is admitted: a pause of the last one ends, which
      // would hold the workers.
      callers.ClientLeft();
      simulation.Restart();
      side.AcknowledgeAttach(absl::OkStatus());
      callers.ClientArrived();
      return SupervisorEvent::kTimedOut;
    case SupervisorEvent::kClientLeft:
      callers.ClientLeft();
      simulation.Restart();
      return event;
    case SupervisorEvent::kAttendants:
      callers.ServeAttendants();
      return SupervisorEvent::kTimedOut;
    case SupervisorEvent::kRpcs:
      callers.Serve();
      return SupervisorEvent::kTimedOut;
    default:
      if (!callers.IsQuiet()) callers.Serve();
      return event;
  }
}

void SupervisorHost::PublishFrame(std::span<const std::byte> frame,
                                  const FrameMetrics& metrics,
                                  absl::string_view metadata) {
  // 0 for a frame that is larger than the ring's, which the caller excludes.
  (void)parts_->frames->Publish(frame, metrics, metadata);
}

void SupervisorHost::AnswerFrame() {
  parts_->side.AnswerFrame(parts_->side.frame_request());
}

void SupervisorHost::ResetWorkers() { parts_->side.ResetWorkers(std::nullopt); }
absl::Status SupervisorHost::Open() { return parts_->side.Open(); }
void SupervisorHost::WatchInput(int fd) { parts_->side.WatchInput(fd); }
void SupervisorHost::MessageWorkers() { parts_->side.MessageWorkers(); }
uint64_t SupervisorHost::answered_at() const {
  return parts_->side.answered_at();
}
void SupervisorHost::StopWorkers() {
  parts_->are_stopped = true;
  parts_->side.StopWorkers();
}
uint32_t SupervisorHost::dead_worker() const {
  return parts_->side.dead_worker();
}
bool SupervisorHost::ReplaceWorker(uint32_t worker) {
  return parts_->side.ReplaceWorker(worker);
}
std::string SupervisorHost::WorkerText(uint32_t worker) const {
  return parts_->side.WorkerText(worker);
}
void SupervisorHost::End(ErrorCode code, absl::string_view text) {
  parts_->side.End(code, text);
}
uint64_t SupervisorHost::steps() const { return parts_->side.worker_steps(); }
int SupervisorHost::fd() const {
  return parts_->side.region().memory().handle();
}
bool SupervisorHost::FramesWatched() const {
  return parts_->side.region().FramesWatched();
}

}  // namespace tandem
