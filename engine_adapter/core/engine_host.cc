#include "engine_adapter/core/engine_host.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<EngineHost>> EngineHost::Create(
    Engine* engine, Options options) {
  const EngineSchema& schema = engine->schema();
  absl::StatusOr<std::string> description =
      ToJson(schema.description, schema.obs_size, schema.act_size);
  if (!description.ok()) return description.status();
  absl::StatusOr<EngineSide> side =
      EngineSide::Create(options.name,
                         {.num_envs = schema.num_envs,
                          .obs_size = schema.obs_size,
                          .act_size = schema.act_size,
                          .task = schema.task,
                          .info_size = InfoSize(schema.description),
                          .description = *std::move(description)},
                         options.side);
  if (!side.ok()) return side.status();
  std::unique_ptr<EngineHost> host(
      new EngineHost(engine, std::move(options), *std::move(side)));
  absl::Status status = host->runner_.ResetAll(host->options_.seed);
  if (!status.ok()) return status;
  status = host->side_.Open();
  if (!status.ok()) return status;
  return host;
}

EngineHost::EngineHost(Engine* engine, Options options, EngineSide side)
    : options_(std::move(options)),
      side_(std::move(side)),
      runner_(engine, &side_.arrays()) {}

EngineHost::~EngineHost() { Stop(); }

void EngineHost::Run() {
  // relaxed: a flag for people; nothing is read on the strength of it.
  running_.store(true, std::memory_order_relaxed);
  for (;;) {
    const EngineEvent event = side_.Next(Deadline::Infinite());
    if (event == EngineEvent::kStopRequested) break;
    Serve(event);
  }
  // relaxed: as above.
  running_.store(false, std::memory_order_relaxed);
}

void EngineHost::Start() {
  // relaxed: as in Run; true from here, so that IsRunning holds at once.
  running_.store(true, std::memory_order_relaxed);
  thread_ = std::thread([this] { Run(); });
}

void EngineHost::Stop() {
  RequestStop();
  if (thread_.joinable()) thread_.join();
}

bool EngineHost::IsRunning() const {
  // relaxed: as in Run.
  return running_.load(std::memory_order_relaxed);
}

bool EngineHost::Poll() {
  const EngineEvent event = side_.Poll();
  Serve(event);
  return event != EngineEvent::kTimedOut &&
         event != EngineEvent::kStopRequested;
}

void EngineHost::Serve(EngineEvent event) {
  switch (event) {
    case EngineEvent::kExchange: {
      fresh_ = false;
      const absl::Status status =
          runner_.Run(side_.kind(), side_.autoreset_mode());
      if (status.ok()) {
        side_.Publish();
        if (!last_failure_.ok()) last_failure_ = absl::OkStatus();
      } else {
        side_.Fail(ErrorCode::kEngineFailed, status.message());
        if (status != last_failure_) {
          Log(absl::StrCat("step failed: ", status.message()));
        }
        last_failure_ = status;
      }
      return;
    }
    case EngineEvent::kClientArrived: {
      const absl::Status status =
          fresh_ ? absl::OkStatus() : runner_.ResetAll(std::nullopt);
      fresh_ = status.ok();
      side_.Welcome(
          status.ok() ? status
                      : MakeError(ErrorCode::kEngineFailed, status.message()));
      Log(status.ok() ? "client attached"
                      : absl::StrCat("client refused: ", status.message()));
      return;
    }
    case EngineEvent::kClientLeft: {
      const absl::Status status = runner_.ResetAll(std::nullopt);
      fresh_ = status.ok();
      Log(status.ok()
              ? "client left; environments reset"
              : absl::StrCat("client left; reset failed: ", status.message()));
      return;
    }
    case EngineEvent::kBrokenClient:
      Log(side_.BrokenClientText());
      return;
    case EngineEvent::kTimedOut:
    case EngineEvent::kInterrupted:
    case EngineEvent::kStopRequested:
      return;
  }
}

void EngineHost::Log(absl::string_view line) const {
  if (options_.log) options_.log(line);
}

}  // namespace tandem
