// The functions of tandem.h for engines.
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/os/fork_guard.h"
#include "base/printable.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/service.h"
#include "sdk/call_result.h"
#include "sdk/foreign_engine.h"
#include "sdk/open_engines.h"
#include "sdk/tandem.h"
#include "transport/report.h"

namespace tandem {
namespace {

// A number of this thread, other than 0: one instruction, without a call, if
// the compiler has it.
uintptr_t ThisThread() {
#if __has_builtin(__builtin_thread_pointer)
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
#else
  thread_local char own;
  return reinterpret_cast<uintptr_t>(&own);
#endif
}

// Where a call may come from while the callback runs, in the callback's thread.
enum class InCallback : uint8_t { kRefused, kAllowed };

// `nested`: the caller is inside the callback.
absl::Status Busy(bool nested, InCallback in_callback) {
  return MakeError(
      ErrorCode::kConcurrentUse,
      nested ? "expected a call outside of the engine's callback, found one "
               "inside; return from the callback first"
      : in_callback == InCallback::kAllowed
          ? "expected a call of the thread that serves the engine, found "
            "another thread while that one is inside a call; during "
            "tandem_engine_run only the callback may call this: to do it "
            "later, serve by tandem_engine_poll or _next in a loop of your "
            "own, post the answer to that loop, and call this there"
          : "expected one thread at a time, found another thread inside a "
            "call on the same engine; wait for it");
}

// Why no call could begin alone. OK: the caller is inside one, as the engine's
// callback, and may call.
[[gnu::noinline]] absl::Status WhyNotAlone(tandem_engine* handle,
                                           InCallback in_callback) {
  if (handle == nullptr) return MissingArgument("engine");
  const OpenEngines::Use use = OpenEngines::Get().Enter(handle);
  if (!use) return InvalidHandle("engine");
  TANDEM_RETURN_IF_ERROR(CheckProcess(use->born_in, "engine"));
  // relaxed: only this thread writes its own mark.
  const bool nested =
      use->caller.load(std::memory_order_relaxed) == ThisThread();
  if (nested && in_callback == InCallback::kAllowed) return absl::OkStatus();
  return Busy(nested, in_callback);
}

// Calls `body` while no other thread is inside such a call of this engine.
template <typename Body>
tandem_code CallAloneOpen(tandem_engine* handle, InCallback in_callback,
                          const Body& body) {
  const OpenEngines::AloneUse use = OpenEngines::Get().EnterAlone(handle);
  return Result([&]() -> absl::Status {
    if (!use) {
      TANDEM_RETURN_IF_ERROR(WhyNotAlone(handle, in_callback));
      return body(*OpenEngines::Get().Enter(handle));
    }
    TANDEM_RETURN_IF_ERROR(CheckProcess(use->born_in, "engine"));
    // relaxed: see WhyNotAlone.
    use->caller.store(ThisThread(), std::memory_order_relaxed);
    absl::Status status = Guarded([&] { return body(*use); });
    // relaxed: as above.
    use->caller.store(0, std::memory_order_relaxed);
    return status;
  });
}

template <typename Body>
tandem_code CallAlone(tandem_engine* handle, InCallback in_callback,
                      const Body& body) {
  return CallAloneOpen(handle, in_callback,
                       [&](OpenEngine& open) { return body(*open.engine); });
}

// Calls `body` at any time.
template <typename Body>
tandem_code CallAnytime(tandem_engine* handle, const Body& body) {
  return CallOpen(OpenEngines::Get(), handle, "engine",
                  [&](OpenEngine& open) { return body(*open.engine); });
}

absl::StatusOr<Service> FindService(const char* name) {
  if (name == nullptr) return MissingArgument("service");
  const std::optional<Service> found = ServiceNamed(name);
  if (found) return *found;
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("service: expected one of ",
                                absl::StrJoin(kServiceNames, ", "), ", found '",
                                Printable(name), "'"));
}

}  // namespace
}  // namespace tandem

using tandem::CallAlone;
using tandem::CallAnytime;
using tandem::Deadline;
using tandem::ForeignEngine;
using tandem::InCallback;
using tandem::OpenEngine;
using tandem::OpenEngines;

namespace {

// The code and the text of the exception that is being handled.
[[gnu::noinline]] tandem_code Rethrown() {
  return tandem::Result([]() -> absl::Status { throw; });
}

// The first poll, or one that is refused. Ends the use that `taken` is, unless
// it is nullptr.
[[gnu::noinline]] tandem_code PollFirst(auto* taken, tandem_engine* engine,
                                        int32_t* served) {
  if (taken != nullptr) OpenEngines::GiveAlone(taken);
  return tandem::CallAloneOpen(
      engine, InCallback::kRefused, [&](OpenEngine& open) -> absl::Status {
        bool any = false;
        TANDEM_RETURN_IF_ERROR(open.engine->Poll(&any));
        open.polled = &open.engine->host();
        if (served != nullptr) *served = any ? 1 : 0;
        return absl::OkStatus();
      });
}

}  // namespace

extern "C" {

tandem_code tandem_engine_create(const tandem_engine_options* options,
                                 const tandem_callbacks* callbacks,
                                 tandem_engine** engine) {
  return tandem::Result([&]() -> absl::Status {
    if (engine == nullptr) return tandem::MissingArgument("engine");
    *engine = nullptr;
    tandem_engine_options read;
    TANDEM_RETURN_IF_ERROR(tandem::ReadStruct(options, "options", &read));
    tandem_callbacks called = {};
    if (callbacks != nullptr) {
      TANDEM_RETURN_IF_ERROR(
          tandem::ReadStruct(callbacks, "callbacks", &called));
      if (called.work == nullptr) {
        return tandem::MissingArgument("callbacks->work");
      }
    }
    TANDEM_ASSIGN_OR_RETURN(auto made, ForeignEngine::Create(read, called));
    return OpenEngines::Get().Open(std::move(made), engine);
  });
}

tandem_code tandem_engine_array(tandem_engine* engine, const char* name,
                                tandem_array* array) {
  return CallAnytime(engine, [&](ForeignEngine& open) {
    return open.arrays().Find(name, array);
  });
}

tandem_code tandem_engine_gpu_array(tandem_engine* engine, const char* name,
                                    tandem_array* array) {
  return CallAnytime(engine, [&](ForeignEngine& open) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const auto* arrays, open.gpu_arrays());
    return arrays->Find(name, array);
  });
}

tandem_code tandem_engine_gpu_stream(tandem_engine* engine, void* stream) {
  return CallAlone(
      engine, InCallback::kAllowed, [&](ForeignEngine& open) -> absl::Status {
        TANDEM_RETURN_IF_ERROR(open.gpu_arrays().status());
        open.host().gpu()->WriteOn(static_cast<tandem::CudaStream>(stream));
        return absl::OkStatus();
      });
}

tandem_code tandem_engine_run(tandem_engine* engine) {
  return CallAlone(engine, InCallback::kRefused,
                   [](ForeignEngine& open) { return open.Run(); });
}

tandem_code tandem_engine_poll(tandem_engine* engine, int32_t* served) {
  // Not CallAlone after the first time: this is the path of a step.
  auto* taken = OpenEngines::Get().TakeAlone(engine);
  if (taken == nullptr) [[unlikely]]
    return PollFirst(taken, engine, served);
  // Keeps it in a register: GCC would compute it from the handle again.
  asm("" : "+r"(taken));
  OpenEngine* const open = OpenEngines::ObjectOf(taken);
  if (open->polled == nullptr) [[unlikely]]
    return PollFirst(taken, engine, served);
  // relaxed: see WhyNotAlone.
  open->caller.store(tandem::ThisThread(), std::memory_order_relaxed);
  try {
    const bool any = open->polled->Poll();
    if (served != nullptr) *served = any ? 1 : 0;
    // relaxed: as above.
    open->caller.store(0, std::memory_order_relaxed);
    OpenEngines::GiveAlone(taken);
    return TANDEM_OK;
  } catch (...) {
    // relaxed: as above.
    open->caller.store(0, std::memory_order_relaxed);
    OpenEngines::GiveAlone(taken);
    return Rethrown();
  }
}

tandem_code tandem_engine_next(tandem_engine* engine, double timeout_secs,
                               tandem_work* work) {
  return CallAlone(
      engine, InCallback::kRefused, [&](ForeignEngine& open) -> absl::Status {
        TANDEM_RETURN_IF_ERROR(tandem::CheckOutput(work, "work"));
        TANDEM_RETURN_IF_ERROR(tandem::CheckSeconds(timeout_secs));
        tandem_work next;
        TANDEM_RETURN_IF_ERROR(open.Next(Deadline::After(timeout_secs), &next));
        tandem::WriteStruct(next, work);
        return absl::OkStatus();
      });
}

tandem_code tandem_engine_done(tandem_engine* engine, const char* failure) {
  return CallAlone(
      engine, InCallback::kRefused, [&](ForeignEngine& open) -> absl::Status {
        return open.Done(
            failure == nullptr
                ? absl::OkStatus()
                : tandem::MakeError(tandem::ErrorCode::kEngineFailed, failure));
      });
}

tandem_code tandem_engine_fail(tandem_engine* engine, const char* text) {
  return CallAlone(engine, InCallback::kAllowed,
                   [&](ForeignEngine& open) -> absl::Status {
                     if (text == nullptr)
                       return tandem::MissingArgument("text");
                     open.Fail(text);
                     return absl::OkStatus();
                   });
}

tandem_code tandem_engine_answer(tandem_engine* engine, uint64_t call,
                                 const uint8_t* envelope, uint64_t size) {
  return CallAlone(
      engine, InCallback::kAllowed, [&](ForeignEngine& open) -> absl::Status {
        if (envelope == nullptr) return tandem::MissingArgument("envelope");
        return open.Answer(call, std::span<const uint8_t>(envelope, size));
      });
}

tandem_code tandem_engine_refuse(tandem_engine* engine, uint64_t call,
                                 tandem_code code, const char* text) {
  const auto refuse = [&](ForeignEngine& open) -> absl::Status {
    if (text == nullptr) return tandem::MissingArgument("text");
    if (code <= 0 || code > TANDEM_GPU_OTHER_CONTEXT) {
      return tandem::MakeError(
          tandem::ErrorCode::kInvalidArgument,
          absl::StrCat("code: expected an error of tandem.h, found ", code,
                       "; the call is still unanswered"));
    }
    absl::Status error =
        tandem::MakeError(static_cast<tandem::ErrorCode>(code), text);
    return tandem::ForeignDraws::IsDraw(call)
               ? open.draws().Refuse(call, std::move(error))
               : open.Answer(call, std::move(error));
  };
  if (tandem::ForeignDraws::IsDraw(call)) return CallAnytime(engine, refuse);
  return CallAlone(engine, InCallback::kAllowed, refuse);
}

tandem_code tandem_engine_drawn(tandem_engine* engine, uint64_t call,
                                const tandem_image* image) {
  return CallAnytime(engine, [&](ForeignEngine& open) -> absl::Status {
    tandem_image read;
    TANDEM_RETURN_IF_ERROR(tandem::ReadStruct(image, "image", &read));
    return open.draws().Drawn(call, read);
  });
}

tandem_code tandem_engine_scene_changed(tandem_engine* engine) {
  return CallAnytime(engine, [&](ForeignEngine& open) -> absl::Status {
    if (open.live_scene() == nullptr) {
      return tandem::MakeError(
          tandem::ErrorCode::kUnsupported,
          "expected an engine with services->scene, found none");
    }
    open.live_scene()->NoteChange();
    return absl::OkStatus();
  });
}

tandem_code tandem_engine_stop(tandem_engine* engine) {
  // Not CallAnytime: a signal handler must not allocate, as a text would.
  if (engine == nullptr) return TANDEM_INVALID_ARGUMENT;
  const OpenEngines::Use use = OpenEngines::Get().Enter(engine);
  if (!use) return TANDEM_CLIENT_CLOSED;
  if (use->born_in != tandem::ForkCount()) return TANDEM_FORKED_CHILD;
  use->engine->host().RequestStop();
  return TANDEM_OK;
}

int32_t tandem_engine_stopping(tandem_engine* engine) {
  const OpenEngines::Use use = OpenEngines::Get().Enter(engine);
  const bool serves = use && use->born_in == tandem::ForkCount() &&
                      !use->engine->host().StopRequested();
  return serves ? 0 : 1;
}

tandem_code tandem_engine_enable(tandem_engine* engine, const char* service,
                                 int32_t enabled) {
  return CallAnytime(engine, [&](ForeignEngine& open) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const tandem::Service named,
                            tandem::FindService(service));
    return open.host().EnableService(named, enabled != 0);
  });
}

const char* tandem_service_name(uint32_t bit) {
  return bit < tandem::kServices ? tandem::kServiceNames[bit] : nullptr;
}

tandem_code tandem_engine_status(tandem_engine* engine, tandem_status* status) {
  return CallAnytime(engine, [&](ForeignEngine& open) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(tandem::CheckOutput(status, "status"));
    const tandem::EngineHost& host = open.host();
    const tandem::LrbcHeader& header = *host.mapping()->header();
    tandem_status now = {};
    tandem::CopyText(host.name(), now.region, sizeof(now.region));
    // relaxed: for people; no call depends on it.
    now.enabled_services = header.services.load(std::memory_order_relaxed);
    now.dropped_messages =
        header.dropped_messages.load(std::memory_order_relaxed);
    const absl::StatusOr<tandem::RegionReport> report =
        tandem::ReadRegionReport(host.name());
    // Before the first reset the region has no name; another one may have it.
    if (report.ok() && report->generation == header.generation) {
      now.has_client = report->client.life == tandem::Life::kAlive ? 1 : 0;
      now.client_pid = report->client.pid;
      now.attendants = static_cast<uint32_t>(report->attendants.size());
      now.exchanges = report->frame_seq;
    }
    tandem::WriteStruct(now, status);
    return absl::OkStatus();
  });
}

tandem_code tandem_engine_destroy(tandem_engine* engine) {
  if (engine == nullptr) return TANDEM_OK;
  return tandem::Result([&]() -> absl::Status {
    const OpenEngines::Use use = OpenEngines::Get().Enter(engine);
    if (!use) return tandem::InvalidHandle("engine");
    TANDEM_RETURN_IF_ERROR(tandem::CheckProcess(use->born_in, "engine"));
    if (use->engine.use_count() == 0) {
      return tandem::MakeError(
          tandem::ErrorCode::kInvalidArgument,
          "expected an engine of tandem_engine_create, found the one of "
          "tandem_serve; return from its loop");
    }
    if (OpenEngines::Get().CloseIfAlone(use)) return absl::OkStatus();
    // relaxed: as in WhyNotAlone.
    return tandem::Busy(
        use->caller.load(std::memory_order_relaxed) == tandem::ThisThread(),
        InCallback::kRefused);
  });
}

}  // extern "C"
