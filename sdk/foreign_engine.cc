#include "sdk/foreign_engine.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/rpc_config.h"
#include "engine_adapter/task_description.h"
#include "schema/layout/service.h"
#include "sdk/call_result.h"

namespace tandem {
namespace {

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
  if (callbacks.log != nullptr) {
    host.log = [log = callbacks.log,
                user = callbacks.user](absl::string_view line) {
      log(user, std::string(line).c_str());
    };
  }
  return host;
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
  TANDEM_RETURN_IF_ERROR(CheckStepSecs(options.step_secs));
  if (options.method_count > 0 && options.methods == nullptr) {
    return MissingArgument("options->methods");
  }
  return absl::WrapUnique(
      new ForeignEngine(options, callbacks, std::move(schema)));
}

void ForeignEngine::SetHost(EngineHost* host) {
  host_ = host;
  arrays_ = NamedArrays::OfEngine(host->arrays());
  resets_.reserve(schema_.num_envs);
}

ForeignEngine::ForeignEngine(const tandem_engine_options& options,
                             const tandem_callbacks& callbacks,
                             EngineSchema schema)
    : given_(callbacks),
      callbacks_(callbacks),
      schema_(std::move(schema)),
      step_secs_(options.step_secs) {
  for (uint32_t i = 0; i < options.method_count; ++i) {
    methods_.push_back(static_cast<rpc::MethodId>(options.methods[i]));
  }
  step_.struct_size = sizeof(step_);
  step_.kind = TANDEM_WORK_STEP;
  step_.data = step_data_.data();
}

absl::Status ForeignEngine::Next(Deadline deadline, tandem_work* work) {
  if (called_) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "next: expected an engine without tandem_engine_poll or "
                     "_run, found one that is served by them; use only one of "
                     "the two ways");
  }
  *work = {};
  if (held_ == nullptr && events_.empty()) held_ = host_->Next(deadline);
  if (!events_.empty()) {
    TakeEvent(work);
  } else if (const EngineWork* const next = std::exchange(held_, nullptr)) {
    if (next->steps.empty()) {
      DescribeReset(next->resets, next->reset_io, work);
    } else {
      *work = DescribeStep(next->steps, next->step_io);
    }
  }
  return opening_;
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
  DescribeReset(requests, io, &work);
  return Called(work);
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
    // No effect if the callback has answered the call.
    if (!result.ok()) (void)Answer(work.call, result);
  }
}

void ForeignEngine::ClearClientState() { Add({.kind = TANDEM_WORK_CLEAR}); }

void ForeignEngine::Handle(rpc::MethodId method,
                           std::span<const uint8_t> envelope,
                           std::weak_ptr<const void> wanted,
                           MethodPort::Answer answer) {
  // Calls that were cancelled get no answer.
  std::erase_if(calls_,
                [](const auto& each) { return each.second.wanted.expired(); });
  Event event = {.kind = TANDEM_WORK_CALL,
                 .call = ++last_call_,
                 .method = method,
                 .envelope_bytes = envelope.size()};
  event.envelope.resize((envelope.size() + 7) / 8);
  std::memcpy(event.envelope.data(), envelope.data(), envelope.size());
  calls_.emplace(event.call, Pending{std::move(wanted), std::move(answer)});
  Add(std::move(event));
}

void ForeignEngine::DescribeReset(std::span<const ResetRequest> requests,
                                  const ResetIo& io, tandem_work* work) {
  resets_.clear();
  for (const ResetRequest& request : requests) {
    resets_.push_back({.env = request.env,
                       .has_seed = request.seed.has_value() ? 1U : 0U,
                       .seed = request.seed.value_or(0)});
  }
  data_ = NamedArrays::Of(io);
  work->struct_size = sizeof(*work);
  work->kind = TANDEM_WORK_RESET;
  work->count = static_cast<uint32_t>(resets_.size());
  work->resets = resets_.data();
  work->data = data_.data();
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
}

}  // namespace tandem
