// The error texts of ClientCore: expected, found, and the next action.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/phase_word.h"
#include "transport/session/client_core.h"
#include "transport/session/worker_error.h"
#include "transport/session/worker_text.h"

namespace tandem {
namespace {

std::string EngineWords(const LrbcHeader& header) {
  char text[sizeof(header.error_text)];
  std::memcpy(text, header.error_text, sizeof(text));
  return absl::StrCat(
      "the engine reports: ",
      Printable(absl::string_view(text, strnlen(text, sizeof(text)))));
}

// Why the region of workers ended; "": the supervisor does not say.
std::string EndText(const WorkersHeader& head) {
  // SYNC(workers.end): acquire; the code, then its text.
  if (head.end_code.load(std::memory_order_acquire) == 0) return "";
  char text[sizeof(head.end_text)];
  std::memcpy(text, head.end_text, sizeof(text));
  return Printable(absl::string_view(text, strnlen(text, sizeof(text))));
}

}  // namespace

std::vector<uint32_t> ClientCore::AwaitedWorkers() const {
  std::vector<uint32_t> awaited;
  for (size_t worker = 0; worker < session.region.workers().size(); ++worker) {
    if (state() == State::kLanes && !session.lanes[worker].open) continue;
    // relaxed: for display.
    const bool is_done =
        state() == State::kLanes
            ? LaneIsDone(worker)
            : SlotOf(worker)->done.load(std::memory_order_relaxed) ==
                  session.seq + 1;
    if (!is_done) awaited.push_back(static_cast<uint32_t>(worker));
  }
  return awaited;
}

std::string ClientCore::AwaitedText(int64_t now_ns) const {
  constexpr size_t kMostNamed = 3;
  const std::vector<WorkerRows>& workers = session.region.workers();
  if (workers.empty()) return "";
  const std::vector<uint32_t> awaited = AwaitedWorkers();
  std::string text = absl::StrCat(workers.size() - awaited.size(), " of ",
                                  workers.size(), " workers are done; ");
  const size_t named = std::min(awaited.size(), kMostNamed);
  for (size_t i = 0; i < named; ++i) {
    const uint32_t worker = awaited[i];
    absl::StrAppend(
        &text, "not done: ",
        WorkerText(*SlotOf(worker), worker, workers[worker], now_ns), "; ");
  }
  if (named < awaited.size()) {
    absl::StrAppend(&text, "and ", awaited.size() - named, " more; ");
  }
  return text;
}

std::optional<uint32_t> ClientCore::FailedWorker() const {
  if (session.failed_lane_of >= 0) {
    return static_cast<uint32_t>(session.failed_lane_of);
  }
  for (size_t worker = 0; worker < session.region.workers().size(); ++worker) {
    // relaxed: done published it, and frame_seq that.
    if (SlotOf(worker)->failed_exchange.load(std::memory_order_relaxed) ==
        session.seq) {
      return static_cast<uint32_t>(worker);
    }
  }
  return std::nullopt;
}

std::optional<ClientSide::Failure> ClientCore::LastFailure() const {
  const std::optional<uint32_t> worker = FailedWorker();
  if (!worker) return std::nullopt;
  return ClientSide::Failure{.worker = *worker,
                             .env = WorkerErrorOf(*SlotOf(*worker)).env};
}

std::string ClientCore::FailureText() const {
  const std::optional<uint32_t> worker = FailedWorker();
  if (!worker) return EngineWords(*header());
  const WorkerError error = WorkerErrorOf(*SlotOf(*worker));
  return absl::StrCat("environment ", error.env, " of worker ", *worker,
                      " raised an exception; reset it to go on:\n", error.text);
}

absl::Status ClientCore::EngineStatus() const {
  // relaxed: the acquire load that saw the engine's answer orders this load.
  const auto status = static_cast<ErrorCode>(
      header()->exchange_status.load(std::memory_order_relaxed));
  if (status == ErrorCode::kOk) return absl::OkStatus();
  return MakeError(EngineCode(status), EngineWords(*header()));
}

std::string ClientCore::EnginePhase() const {
  // relaxed: the phase is only displayed.
  return Describe(
      UnpackPhase(header()->engine_phase.load(std::memory_order_relaxed)),
      MonotonicNanos());
}

absl::Status ClientCore::Explain(ErrorCode code) const {
  return code == ErrorCode::kOk ? absl::OkStatus()
                                : MakeError(code, Explanation(code));
}

std::string ClientCore::Explanation(ErrorCode code) const {
  if (code == ErrorCode::kConcurrentUse) {  // Reconnect may replace the region
    return "another thread is inside a call on this client; give each thread "
           "its own client and engine, or lock around the calls";
  }
  // The time of sending is one of the waiter's clock, which may be slightly
  // ahead of MonotonicNanos.
  const int64_t now = std::max(MonotonicNanos(), session.sent_at_ns);
  const auto secs_since = [now](int64_t then) {
    return static_cast<double>(now - then) / 1e9;
  };
  const LrbcHeader& shared = *header();
  // relaxed: the phase is only displayed.
  const PhaseSince phase =
      UnpackPhase(shared.engine_phase.load(std::memory_order_relaxed));
  const std::string doing = Describe(phase, now);
  const std::string region = absl::StrCat("region '", name, "': ");
  const std::string engine =
      absl::StrCat("the engine of region '", name, "' (pid ",
                   // relaxed: the pid is only displayed.
                   shared.server_pid.load(std::memory_order_relaxed), ")");
  const absl::string_view next = serves_environments
                                     ? ClientSide::kNextOfEnvironments
                                     : "reconnect(), or close()";
  switch (code) {
    case ErrorCode::kPeerGone:
      if (!session.region.workers().empty()) {
        const std::string end =
            EndText(*mapping()->At<WorkersHeader>(plan().workers_offset));
        if (!end.empty()) {
          return absl::StrCat(engine, " has ended: ", end, "; ",
                              serves_environments
                                  ? next
                                  : "start it again and call reconnect(), or "
                                    "close()");
        }
      }
      return absl::StrCat(
          engine,
          phase.phase == Phase::kStopped
              ? " has stopped; "
              : absl::StrCat(" is gone: it died or was killed while ", doing,
                             "; "),
          serves_environments ? "" : "start it again and call ", next);
    case ErrorCode::kStepTimeout:
      if (state() == State::kIdle && session.frame_asked_at_ns != 0) {
        return absl::StrFormat(
            "%s drew no frame for %.2f s; it has been %s; drawing without a "
            "graphics card takes up to 0.1 s for each environment: ask again, "
            "with a longer timeout, or for smaller images",
            engine, secs_since(session.frame_asked_at_ns), doing);
      }
      if (state() == State::kLanes) {
        return absl::StrFormat(
            "%s did not answer for %.2f s; %sthe steps of these workers are "
            "still pending: recv() waits for them again, or %s",
            engine, secs_since(session.sent_at_ns), AwaitedText(now), next);
      }
      if (state() != State::kPending) {
        return absl::StrFormat(
            "%s did not answer a new client for %.2f s; it has been %s; is it "
            "stopped, or stuck? Try again, or restart it",
            engine, secs_since(session.sent_at_ns), doing);
      }
      return absl::StrFormat(
          "%s did not answer for %.2f s; it has been %s; %sthe step or reset "
          "is still pending: recv() waits again, %s, close() ends the session",
          engine, secs_since(session.sent_at_ns), doing, AwaitedText(now),
          serves_environments ? "reset() waits and then starts new episodes"
                              : "reconnect() starts a new session");
    case ErrorCode::kBrokenPeer:
      return absl::StrFormat(
          "%s is in another session: expected frame_seq %d or %d and "
          "attach_ack %d, found %d and %d; does another program write to the "
          "region? %s",
          engine, session.seq, session.seq + 1, session.attach_number,
          // relaxed: both numbers are only displayed.
          shared.frame_seq.load(std::memory_order_relaxed),
          shared.attach_ack.load(std::memory_order_relaxed), next);
    case ErrorCode::kInvalidAction:
      if (bad_action < 0 && session.arrays.act_size == 0) {
        return "actions: expected none, since the actions of this region are "
               "fields, which the client writes in place; nothing was sent";
      }
      if (bad_action < 0) {
        return absl::StrFormat(
            "actions: expected float32[%d, %d]; nothing was sent",
            envs_of_actions == 0 ? session.arrays.num_envs : envs_of_actions,
            session.arrays.act_size);
      }
      return absl::StrFormat(
          "actions: expected finite values, found %g at [%d, %d]; nothing was "
          "sent",
          bad_value, bad_action / session.arrays.act_size,
          bad_action % session.arrays.act_size);
    case ErrorCode::kInvalidArgument:
      return absl::StrCat(
          "env_ids: expected indices in 0 .. ", session.arrays.num_envs - 1,
          ", each once at most in a step, with no seeds or one for each",
          session.lanes.empty()
              ? ""
              : absl::StrCat("; workers: expected indices in 0 .. ",
                             session.lanes.size() - 1, ", each once at most"),
          "; nothing was sent");
    case ErrorCode::kStepPending:
      return absl::StrCat(
          region,
          state() == State::kLanes
              ? "the steps of some workers were not received; call recv() "
                "for them first"
              : "the last step or reset was not received; call recv() first",
          serves_environments ? "" : ", or reconnect()");
    case ErrorCode::kNoStepPending:
      return absl::StrCat(
          region,
          state() == State::kLanes
              ? "only steps of some workers are pending; call recv() for "
                "them, such as recv(half=0)"
          : state() == State::kPending
              ? "a step or reset of all environments is pending; call recv()"
              : "nothing was sent; call send() before recv()");
    case ErrorCode::kForkedChild:
      return absl::StrCat(region,
                          "this client belongs to the parent of this process; "
                          "make a client after fork, or use the spawn start "
                          "method");
    case ErrorCode::kClientClosed:
      return absl::StrCat(
          region,
          state() == State::kClosed
              ? "the client was closed; make a new one"
              : "the last reconnect() failed; call it again, or close()");
    case ErrorCode::kInterrupted:
      return absl::StrCat("interrupted while waiting for ", engine,
                          state() == State::kPending
                              ? "; the step or reset is still pending"
                          : state() == State::kLanes
                              ? "; the steps of some workers are still "
                                "pending: recv() waits for them again"
                              : "; no step or reset is pending: call again");
    case ErrorCode::kEnvFailed:
      return FailureText();
    case ErrorCode::kUnsupported:
      if (unsupported != nullptr) return absl::StrCat(region, unsupported);
      return EngineWords(shared);
    case ErrorCode::kEngineFailed:
      return EngineWords(shared);
    default:
      return std::string(MeaningOf(code));
  }
}

}  // namespace tandem
