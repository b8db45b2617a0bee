#include "engine_adapter/engine_host.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/frames/frame_grid.h"
#include "engine_adapter/host/engine_host_impl.h"
#include "engine_adapter/host/gpu_arrays.h"
#include "engine_adapter/services/rpc_host.h"
#include "engine_adapter/task_description.h"
#include "transport/frame_geometry.h"
#include "transport/region_spec.h"

namespace tandem {
namespace {

absl::Status CheckDrawable(absl::string_view flag, const EngineBase& engine,
                           const FrameSource* source) {
  if (source != nullptr) return absl::OkStatus();
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(flag, ": expected a task that can be drawn, found '",
                   engine.schema().task, "', which cannot; leave it out"));
}

absl::Status PrepareFrames(EngineBase* engine, const FrameOptions& options,
                           FrameGeometry* geometry) {
  FrameSource* const source = engine->frames();
  TANDEM_RETURN_IF_ERROR(CheckDrawable("--frames", *engine, source));
  TANDEM_RETURN_IF_ERROR(CheckFrameOptions(options, engine->schema().num_envs));
  const FrameGrid grid = FrameGrid::Of(options);
  *geometry = {.width = grid.FrameWidth(),
               .height = grid.FrameHeight(),
               .channels = kRgbBytes,
               .capacity = options.slots,
               .metadata_bytes = FrameThread::MetadataBytes(options)};
  return source->Prepare(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EngineHost>> EngineHost::Create(
    Engine* engine, Options options) {
  TANDEM_ASSIGN_OR_RETURN(auto host, CreateTicked(engine, std::move(options)));
  TANDEM_RETURN_IF_ERROR(host->CallEngine(engine));
  return host;
}

absl::StatusOr<std::unique_ptr<EngineHost>> EngineHost::CreateTicked(
    EngineBase* engine, Options options) {
  const EngineSchema& schema = engine->schema();
  TANDEM_ASSIGN_OR_RETURN(
      std::string description,
      ToJson(schema.description, schema.obs_size, schema.act_size));
  TANDEM_RETURN_IF_ERROR(Simulation::Check(*engine, Impl::FirstMode(options)));
  TANDEM_RETURN_IF_ERROR(RpcHost::CheckMethods(engine->ports().methods));
  // Written so that NaN is refused.
  if (!(options.scene_hz >= 0 && options.scene_hz <= kMaxSceneHz)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("--scene_hz: expected 0 to ", kMaxSceneHz,
                                  ", found ", options.scene_hz));
  }
  FrameGeometry frames = {.capacity = 0};
  if (options.frames) {
    TANDEM_RETURN_IF_ERROR(PrepareFrames(engine, *options.frames, &frames));
  }
  ImageSize images = schema.images;
  if (images.width != 0) {
    TANDEM_RETURN_IF_ERROR(
        CheckImageSize("images", images.width, images.height));
  }
  if (options.images) {
    absl::Status status = CheckDrawable("--images", *engine, engine->images());
    status.Update(CheckImageSize("--images", options.images->width,
                                 options.images->height));
    if (!status.ok()) return status;
    images = {.width = static_cast<uint32_t>(options.images->width *
                                             options.images->cameras.size()),
              .height = options.images->height};
  }
  TANDEM_ASSIGN_OR_RETURN(auto gpu, MakeGpuArrays(schema, options.log));
  TANDEM_ASSIGN_OR_RETURN(
      auto side,
      EngineSide::Create(options.name,
                         {.num_envs = schema.num_envs,
                          .obs_size = schema.obs_size,
                          .act_size = schema.act_size,
                          .ring_bytes = options.rpc_ring_bytes,
                          .task = schema.task,
                          .info_size = InfoSize(schema.description),
                          .description = std::move(description),
                          .frames = frames,
                          .commands = true,
                          .attendants = true,
                          .images = images,
                          .image_slot_bytes = options.image_slot_bytes,
                          .fields = schema.fields,
                          .subsets = true,
                          .gpu = GpuSpecOf(gpu.get(), schema)},
                         {.region = {.group_access = options.group_access},
                          .wait = options.wait,
                          .wakes_early = options.wakes_early}));
  std::unique_ptr<EngineHost> host(new EngineHost(std::make_unique<Impl>(
      engine, std::move(options), std::move(gpu), std::move(side))));
  TANDEM_RETURN_IF_ERROR(host->impl_->BeginOpening());
  return host;
}

EngineHost::EngineHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EngineHost::~EngineHost() = default;

absl::Status EngineHost::CallEngine(Engine* engine) {
  return impl_->CallEngine(engine);
}
void EngineHost::Run() { impl_->Run(); }
void EngineHost::Start() { impl_->Start(); }
void EngineHost::Stop() { impl_->Stop(); }
bool EngineHost::IsRunning() const { return impl_->IsRunning(); }
bool EngineHost::Poll() { return impl_->Poll(); }
const EngineWork* EngineHost::Next(Deadline deadline) {
  return impl_->Next(deadline);
}
absl::Status EngineHost::Done(const absl::Status& result) {
  return impl_->Done(result);
}
absl::Status EngineHost::EnableService(Service service, bool enabled) {
  return impl_->EnableService(service, enabled);
}
bool EngineHost::StopRequested() const { return impl_->side().StopRequested(); }
void EngineHost::RequestStop() { impl_->side().RequestStop(); }
void EngineHost::RemoveName() const { impl_->side().region().RemoveName(); }
const std::string& EngineHost::name() const {
  return impl_->side().region().name();
}
const StepArrays& EngineHost::arrays() const { return impl_->side().arrays(); }
const std::shared_ptr<const RegionMapping>& EngineHost::mapping() const {
  return impl_->side().mapping();
}
const std::shared_ptr<ExportedArrays>& EngineHost::gpu() const {
  return impl_->gpu();
}

}  // namespace tandem
