#include "sdk/foreign_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/rpc_config.h"
#include "engine_adapter/task_description.h"
#include "schema/layout/image_slot.h"
#include "schema/layout/service.h"
#include "sdk/call_result.h"
#include "sdk/engine_fields.h"
#include "transport/exported_arrays.h"

namespace tandem {
namespace {

absl::StatusOr<FrameOptions> FramesOf(const tandem_frames& given,
                                      const tandem_engine_options& options) {
  constexpr uint32_t kShown = 4;
  tandem_frames frames;
  TANDEM_RETURN_IF_ERROR(ReadStruct(&given, "options->frames", &frames));
  FrameOptions read = {.width = frames.width, .height = frames.height};
  if (frames.hz != 0) read.hz = frames.hz;
  if (frames.envs == nullptr) {
    read.envs.resize(std::min(options.num_envs, kShown));
    std::iota(read.envs.begin(), read.envs.end(), 0U);
  } else {
    read.envs.assign(frames.envs, frames.envs + frames.env_count);
  }
  return read;
}

absl::StatusOr<EngineHost::Options> HostOptions(
    const tandem_engine_options& options, const tandem_callbacks& callbacks) {
  EngineHost::Options host = {.name =
                                  options.name == nullptr ? "" : options.name};
  if (options.has_seed != 0) host.seed = options.seed;
  for (size_t i = 0; i < kServices; ++i) {
    const auto service = static_cast<Service>(i);
    host.rpc[service].enabled =
        (options.disabled_services & BitOf(service)) == 0;
  }
  if (options.stream_hz != nullptr) {
    TANDEM_RETURN_IF_ERROR(
        ParseStreamRates(options.stream_hz, &host.rpc, "options->stream_hz"));
  }
  if (options.rpc_ring_kib != 0) {
    TANDEM_ASSIGN_OR_RETURN(
        host.rpc_ring_bytes,
        RpcRingBytes(options.rpc_ring_kib, "options->rpc_ring_kib"));
  }
  if (options.frames != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(host.frames, FramesOf(*options.frames, options));
  }
  if (options.image_slot_kib > kMaxImageSlotBytes / 1024) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("options->image_slot_kib: expected at most ",
                                  kMaxImageSlotBytes / 1024, ", found ",
                                  options.image_slot_kib));
  }
  host.image_slot_bytes = options.image_slot_kib * 1024;
  if (callbacks.log != nullptr) {
    host.log = [log = callbacks.log,
                user = callbacks.user](absl::string_view line) {
      log(user, std::string(line).c_str());
    };
  }
  return host;
}

absl::StatusOr<GpuMemory> MemoryOf(const tandem_gpu_memory& given) {
  tandem_gpu_memory memory;
  TANDEM_RETURN_IF_ERROR(ReadStruct(&given, "options->gpu->memory", &memory));
  GpuMemory read = {.fd = memory.fd,
                    .bytes = memory.bytes,
                    .offset = memory.offset,
                    .channels = memory.channels,
                    .dedicated = memory.dedicated != 0};
  std::ranges::copy(memory.device_uuid, read.device_uuid.begin());
  return read;
}

absl::Status CheckStepSecs(double secs) {
  if (secs >= 0 && std::isfinite(secs)) return absl::OkStatus();
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("options->step_secs: expected a finite number of seconds, "
                   "0 or more, found ",
                   secs));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ForeignEngine>> ForeignEngine::Create(
    const tandem_engine_options& options, const tandem_callbacks& callbacks) {
  TANDEM_ASSIGN_OR_RETURN(auto engine, Make(options, callbacks));
  TANDEM_ASSIGN_OR_RETURN(auto host, HostOptions(options, callbacks));
  TANDEM_ASSIGN_OR_RETURN(
      engine->own_host_,
      EngineHost::CreateTicked(engine.get(), std::move(host)));
  engine->SetHost(engine->own_host_.get());
  return engine;
}

absl::StatusOr<std::unique_ptr<ForeignEngine>> ForeignEngine::Make(
    const tandem_engine_options& options, const tandem_callbacks& callbacks) {
  EngineSchema schema = {
      .task = options.task == nullptr ? "engine" : options.task,
      .num_envs = options.num_envs,
      .obs_size = options.obs_size,
      .act_size = options.act_size};
  if (options.description != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(
        schema.description,
        TaskDescriptionFrom(options.description, options.obs_size,
                            options.act_size));
  }
  TANDEM_RETURN_IF_ERROR(ReadFields(options, &schema));
  TANDEM_RETURN_IF_ERROR(CheckStepSecs(options.step_secs));
  if (options.method_count > 0 && options.methods == nullptr) {
    return MissingArgument("options->methods");
  }
  schema.images = {.width = options.image_width,
                   .height = options.image_height};
  if (options.gpu != nullptr) {
    tandem_gpu gpu;
    TANDEM_RETURN_IF_ERROR(ReadStruct(options.gpu, "options->gpu", &gpu));
    schema.gpu = GpuSchema{.cuda_device = static_cast<int>(gpu.cuda_device),
                           .fills_cpu = gpu.gpu_only == 0,
                           .image_width = gpu.image_width,
                           .image_height = gpu.image_height};
    if (gpu.memory != nullptr) {
      TANDEM_ASSIGN_OR_RETURN(schema.gpu->memory, MemoryOf(*gpu.memory));
    }
  }
  auto engine = absl::WrapUnique(
      new ForeignEngine(options, callbacks, std::move(schema)));
  TANDEM_RETURN_IF_ERROR(engine->ReadServices(options));
  return engine;
}

absl::Status ForeignEngine::ReadServices(const tandem_engine_options& options) {
  if (options.services == nullptr) return absl::OkStatus();
  tandem_services services;
  TANDEM_RETURN_IF_ERROR(
      ReadStruct(options.services, "options->services", &services));
  TANDEM_ASSIGN_OR_RETURN(
      services_,
      ForeignServices::Make(
          services, schema_.num_envs, schema_.task,
          [this](int32_t result) { return ResultOf(result); }, &draws_));
  schema_.description.own_methods = services_->own_methods();
  return absl::OkStatus();
}

ForeignEngine::~ForeignEngine() {
  Close();
  own_host_.reset();  // its threads use the rest
}

void ForeignEngine::Close() {
  if (frames() != nullptr) services_->frames()->Close();
}

EnginePorts ForeignEngine::ports() {
  EnginePorts ports;
  if (services_ != nullptr) {
    ports = services_->ports();
    if (!schema_.description.own_methods.empty()) ports.own = this;
  }
  ports.methods = this;
  return ports;
}

absl::StatusOr<const NamedArrays*> ForeignEngine::gpu_arrays() const {
  if (host_->gpu() != nullptr) return &gpu_arrays_;
  return MakeError(
      ErrorCode::kUnsupported,
      !schema_.gpu ? "expected an engine with options->gpu, found one without"
      : schema_.gpu->memory
          ? "expected arrays on the GPU, found options->gpu->memory, which the "
            "program has made itself"
          : "expected arrays on the GPU, found no driver; the engine's log has "
            "the reason");
}

void ForeignEngine::SetHost(EngineHost* host) {
  host_ = host;
  arrays_ = NamedArrays::OfEngine(host->arrays(), schema_.images);
  if (host->gpu() != nullptr) {
    gpu_arrays_ = NamedArrays::OfGpu(*host->gpu(), schema_.num_envs);
  }
  resets_.reserve(schema_.num_envs);
  contracts_.reserve(schema_.num_envs);
  data_.resize(NamedArrays::kFirstField + host->arrays().fields.size());
  step_data_ = data_;
  step_.data = step_data_.data();
}

ForeignEngine::ForeignEngine(const tandem_engine_options& options,
                             const tandem_callbacks& callbacks,
                             EngineSchema schema)
    : given_(callbacks),
      callbacks_(callbacks),
      schema_(std::move(schema)),
      step_secs_(options.step_secs),
      draws_([this](uint64_t number, const tandem_draw& draw) {
        Add({.kind = TANDEM_WORK_DRAW, .call = number, .draw = draw});
      }) {
  for (uint32_t i = 0; i < options.method_count; ++i) {
    methods_.push_back(static_cast<rpc::MethodId>(options.methods[i]));
  }
  step_.struct_size = sizeof(step_);
  step_.kind = TANDEM_WORK_STEP;
}

absl::Status ForeignEngine::Next(Deadline deadline, tandem_work* work) {
  if (called_) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "next: expected an engine without tandem_engine_poll or "
                     "_run, found one that is served by them; use only one of "
                     "the two ways");
  }
  *work = {};
  failure_.clear();
  DropUnwantedDraws();
  for (;;) {
    if (held_ == nullptr && events_.empty()) held_ = host_->Next(deadline);
    if (!events_.empty()) {
      TakeEvent(work);
      return opening_;
    }
    const EngineWork* const next = std::exchange(held_, nullptr);
    if (next == nullptr) return opening_;
    if (!next->steps.empty()) {
      *work = DescribeStep(next->steps, next->step_io);
      return opening_;
    }
    const absl::Status described =
        DescribeReset(next->resets, next->reset_io, work);
    if (described.ok() && work->count > 0) return opening_;
    // All have states, or one of these has failed.
    *work = {};
    opening_ = host_->Done(described);
  }
}

absl::Status ForeignEngine::Done(const absl::Status& result) {
  if (called_ || held_ != nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "done: expected work that next has returned, found none");
  }
  absl::Status status = host_->Done(result);
  // Only the first reset has an error of its own, which is permanent.
  if (CodeOf(status) != ErrorCode::kInvalidArgument) opening_ = status;
  return status;
}

absl::Status ForeignEngine::StartCalls() {
  if (given_.work == nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected an engine with callbacks, found one without; "
                     "call tandem_engine_next");
  }
  TANDEM_RETURN_IF_ERROR(opening_);
  called_ = true;
  CallWithEvents();
  const absl::Status status = host_->CallEngine(this);
  if (CodeOf(status) == ErrorCode::kInvalidArgument) {
    called_ = false;
  } else {
    opening_ = status;
  }
  return status;
}

absl::Status ForeignEngine::Run() {
  if (!called_) TANDEM_RETURN_IF_ERROR(StartCalls());
  TANDEM_RETURN_IF_ERROR(opening_);
  host_->Run();
  return absl::OkStatus();
}

void ForeignEngine::Fail(absl::string_view text) {
  failure_ = std::string(text);
  callbacks_.work = &CallWithoutText;
  callbacks_.user = this;
}

int32_t ForeignEngine::CallWithoutText(void* user, const tandem_work* work) {
  auto* const self = static_cast<ForeignEngine*>(user);
  self->failure_.clear();
  self->callbacks_ = self->given_;
  return self->given_.work(self->given_.user, work);
}

absl::Status ForeignEngine::ResultOf(int32_t result) {
  absl::Status status = result == 0 ? absl::OkStatus() : Failure(result);
  failure_.clear();
  callbacks_ = given_;
  return status;
}

absl::Status ForeignEngine::Failure(int32_t result) {
  const std::string text = std::exchange(failure_, {});
  return MakeError(ErrorCode::kEngineFailed,
                   text.empty()
                       ? absl::StrCat("the engine's callback returned ", result,
                                      " without a text")
                       : text);
}

absl::Status ForeignEngine::Reset(std::span<const ResetRequest> requests,
                                  const ResetIo& io) {
  tandem_work work = {};
  TANDEM_RETURN_IF_ERROR(DescribeReset(requests, io, &work));
  return work.count == 0 ? absl::OkStatus() : Called(work);
}

absl::Status ForeignEngine::Step(std::span<const uint32_t> envs,
                                 const StepIo& io) {
  return Called(DescribeStep(envs, io));
}

absl::Status ForeignEngine::Answer(
    uint64_t call, absl::StatusOr<std::span<const uint8_t>> envelope) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) {
    return MakeError(
        ErrorCode::kNoStepPending,
        absl::StrCat("call: expected the number of an unanswered call, found ",
                     call, "; it was answered or cancelled, or never came"));
  }
  absl::Status status = found->second.answer(std::move(envelope));
  const ErrorCode code = CodeOf(status);
  if (code != ErrorCode::kInvalidArgument &&
      code != ErrorCode::kMessageTooLarge) {
    calls_.erase(found);
  }
  return status;
}

// The program gets an event by Next, or at once if the host calls the engine.
void ForeignEngine::Add(Event event) {
  events_.push_back(std::move(event));
  if (called_) CallWithEvents();
}

void ForeignEngine::CallWithEvents() {
  while (!events_.empty()) {
    tandem_work work = {};
    TakeEvent(&work);
    const absl::Status result = Called(work);
    if (result.ok()) continue;
    // No effect if the callback has answered.
    if (work.kind == TANDEM_WORK_DRAW) {
      (void)draws_.Refuse(work.call, result);
    } else {
      (void)Answer(work.call, result);
    }
  }
}

void ForeignEngine::ClearClientState() {
  if (services_ != nullptr) services_->ClearClientState();
  Add({.kind = TANDEM_WORK_CLEAR});
}

// Callers of these images have left, or their time is over.
void ForeignEngine::DropUnwantedDraws() {
  while (!events_.empty() && events_.front().kind == TANDEM_WORK_DRAW &&
         !draws_.Has(events_.front().call)) {
    events_.pop_front();
  }
}

void ForeignEngine::Handle(rpc::MethodId method,
                           std::span<const uint8_t> envelope,
                           std::weak_ptr<const void> wanted,
                           MethodPort::Answer answer) {
  AddCall({.kind = TANDEM_WORK_CALL, .method = method}, envelope,
          std::move(wanted), std::move(answer));
}

void ForeignEngine::CallOwn(size_t method, std::span<const uint8_t> request,
                            std::weak_ptr<const void> wanted,
                            OwnMethodPort::Answer answer) {
  const auto with_bytes =
      [wanted, answer = std::move(answer)](
          absl::StatusOr<std::span<const uint8_t>> bytes) -> absl::Status {
    if (wanted.expired()) {
      return MakeError(ErrorCode::kNoStepPending,
                       "call: expected an unanswered call, found one whose "
                       "caller has left or cancelled it");
    }
    answer(bytes);
    return absl::OkStatus();
  };
  AddCall({.kind = TANDEM_WORK_CALL,
           .method = rpc::MethodId::CallOwn,
           .name = schema_.description.own_methods[method].name.c_str()},
          request, std::move(wanted), with_bytes);
}

void ForeignEngine::AddCall(Event event, std::span<const uint8_t> bytes,
                            std::weak_ptr<const void> wanted,
                            MethodPort::Answer answer) {
  // Calls that were cancelled get no answer.
  std::erase_if(calls_,
                [](const auto& each) { return each.second.wanted.expired(); });
  event.call = ++last_call_;
  event.envelope_bytes = bytes.size();
  event.envelope.resize(bytes.size() / sizeof(uint64_t) + 1);  // a NUL behind
  // An empty span may have no address, which memcpy refuses.
  if (!bytes.empty()) {
    std::memcpy(event.envelope.data(), bytes.data(), bytes.size());
  }
  calls_.emplace(event.call, Pending{std::move(wanted), std::move(answer)});
  Add(std::move(event));
}

absl::Status ForeignEngine::DescribeReset(
    std::span<const ResetRequest> requests, const ResetIo& io,
    tandem_work* work) {
  resets_.clear();
  contracts_.clear();
  const bool any = services_ != nullptr && services_->has_contracts();
  for (const ResetRequest& request : requests) {
    if (services_ != nullptr) {
      TANDEM_ASSIGN_OR_RETURN(const bool loaded,
                              services_->LoadStaged(request.env));
      if (loaded) continue;
    }
    if (any) contracts_.push_back(services_->TakeContract(request.env));
    resets_.push_back({.env = request.env,
                       .has_seed = request.seed.has_value() ? 1U : 0U,
                       .seed = request.seed.value_or(0)});
  }
  NamedArrays::Fill(io, data_);
  work->struct_size = sizeof(*work);
  work->kind = TANDEM_WORK_RESET;
  work->count = static_cast<uint32_t>(resets_.size());
  work->resets = resets_.data();
  work->data = data_.data();
  work->contracts = any ? contracts_.data() : nullptr;
  return absl::OkStatus();
}

void ForeignEngine::SetStepData(const StepIo& io) {
  NamedArrays::Fill(io, step_data_);
  step_obs_ = io.obs.data();
}

void ForeignEngine::TakeEvent(tandem_work* work) {
  current_ = std::move(events_.front());
  events_.pop_front();
  work->struct_size = sizeof(*work);
  work->kind = current_.kind;
  work->method = static_cast<uint32_t>(current_.method);
  work->call = current_.call;
  work->envelope = reinterpret_cast<const uint8_t*>(current_.envelope.data());
  work->envelope_size = current_.envelope_bytes;
  work->name = current_.name;
  if (current_.kind == TANDEM_WORK_DRAW) work->draw = &current_.draw;
}

}  // namespace tandem
