#include "sdk/foreign_engine.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/core/task_description.h"
#include "schema/layout/service.h"
#include "sdk/call_result.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

EngineHost::Options HostOptions(const tandem_engine_options& options,
                                const tandem_callbacks& callbacks) {
  EngineHost::Options host = {.name = RegionNameOr(options.name)};
  if (options.has_seed != 0) host.seed = options.seed;
  for (size_t i = 0; i < kServices; ++i) {
    const auto service = static_cast<Service>(i);
    host.rpc[service].enabled =
        (options.disabled_services & BitOf(service)) == 0;
  }
  if (callbacks.log != nullptr) {
    host.log = [log = callbacks.log,
                user = callbacks.user](absl::string_view line) {
      log(user, std::string(line).c_str());
    };
  }
  return host;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ForeignEngine>> ForeignEngine::Create(
    const tandem_engine_options& options, const tandem_callbacks& callbacks) {
  ASSIGN_OR_RETURN(auto engine, Make(options, callbacks));
  ASSIGN_OR_RETURN(
      engine->own_host_,
      EngineHost::CreateTicked(engine.get(), HostOptions(options, callbacks)));
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
    ASSIGN_OR_RETURN(schema.description,
                     TaskDescriptionFrom(options.description, options.obs_size,
                                         options.act_size));
  }
  if (options.method_count > 0 && options.methods == nullptr) {
    return MissingArgument("options->methods");
  }
  return absl::WrapUnique(
      new ForeignEngine(options, callbacks, std::move(schema)));
}

void ForeignEngine::SetHost(EngineHost* host) {
  host_ = host;
  arrays_ = NamedArrays::OfEngine(host->side().arrays());
}

ForeignEngine::ForeignEngine(const tandem_engine_options& options,
                             const tandem_callbacks& callbacks,
                             EngineSchema schema)
    : callbacks_(callbacks),
      schema_(std::move(schema)),
      step_secs_(options.step_secs) {
  for (uint32_t i = 0; i < options.method_count; ++i) {
    methods_.push_back(static_cast<rpc::MethodId>(options.methods[i]));
  }
  resets_.reserve(options.num_envs);
}

absl::Status ForeignEngine::Next(Deadline deadline, tandem_work* work) {
  *work = {};
  if (held_ == nullptr && events_.empty()) held_ = host_->Next(deadline);
  if (!events_.empty()) {
    TakeEvent(work);
  } else if (held_ != nullptr) {
    Describe(*std::exchange(held_, nullptr), work);
  }
  return opening_;
}

absl::Status ForeignEngine::Done(const absl::Status& result) {
  if (held_ != nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "done: expected work that next has returned, found none");
  }
  absl::Status status = host_->Done(result);
  // Only the first reset has an error of its own, which is permanent.
  if (CodeOf(status) != ErrorCode::kInvalidArgument) opening_ = status;
  return status;
}

absl::StatusOr<bool> ForeignEngine::ServeOne(Deadline deadline) {
  tandem_work work;
  RETURN_IF_ERROR(Next(deadline, &work));
  if (work.kind == TANDEM_WORK_NONE) return false;
  failure_.clear();
  const int32_t result = callbacks_.work(callbacks_.user, &work);
  if (work.kind == TANDEM_WORK_RESET || work.kind == TANDEM_WORK_STEP) {
    RETURN_IF_ERROR(Done(
        result == 0
            ? absl::OkStatus()
            : MakeError(ErrorCode::kEngineFailed,
                        failure_.empty()
                            ? absl::StrCat("the engine's callback returned ",
                                           result, " without a text")
                            : failure_)));
  }
  return true;
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
  if (CodeOf(status) != ErrorCode::kInvalidArgument) calls_.erase(found);
  return status;
}

void ForeignEngine::ClearClientState() {
  events_.push_back({.kind = TANDEM_WORK_CLEAR});
}

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
  events_.push_back(std::move(event));
}

void ForeignEngine::Describe(const EngineWork& from, tandem_work* work) {
  work->struct_size = sizeof(*work);
  NamedArrays::Point(from, &data_);
  work->data = data_.data();
  if (!from.steps.empty()) {
    work->kind = TANDEM_WORK_STEP;
    work->count = static_cast<uint32_t>(from.steps.size());
    work->envs = from.steps.data();
    return;
  }
  resets_.clear();
  for (const ResetRequest& request : from.resets) {
    resets_.push_back({.env = request.env,
                       .has_seed = request.seed.has_value() ? 1U : 0U,
                       .seed = request.seed.value_or(0)});
  }
  work->kind = TANDEM_WORK_RESET;
  work->count = static_cast<uint32_t>(resets_.size());
  work->resets = resets_.data();
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
