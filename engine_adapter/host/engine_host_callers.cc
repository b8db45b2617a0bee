// EngineHost's part for the callers of RPCs: the client and attendants.
#include <array>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/host/engine_host.h"
#include "engine_adapter/services/rpc_host.h"
#include "schema/layout/attendant_slot.h"
#include "transport/base/clock.h"
#include "transport/ring/ring.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/session/engine_side.h"

namespace tandem {

void EngineHost::BeginRpcs(size_t caller, absl::StatusOr<RingReader> reader,
                           absl::StatusOr<RingWriter> writer) {
  if (!reader.ok() || !writer.ok()) {
    LogBrokenRings(caller);
    return;
  }
  rpcs_->Start(caller, EnvelopeReader(*std::move(reader), {}),
               EnvelopeWriter(*std::move(writer)));
}

// Serves all callers beside an exchange; Next will not return these events.
void EngineHost::ServeCallers() {
  (void)side_.PollRpcs();
  if (side_.PollAttendants()) {
    ServeAttendants();
  } else {
    ServeRpcs();
  }
}

void EngineHost::ServeAttendants() {
  for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
    const size_t caller = kClientCaller + 1 + slot;
    switch (side_.PollAttendant(slot)) {
      case AttendantChange::kNone:
        break;
      case AttendantChange::kArrived:
        rpcs_->Stop(caller);
        BeginRpcs(caller, side_.AttendantRingReader(slot),
                  side_.AttendantRingWriter(slot));
        side_.WelcomeAttendant(slot);
        Log(absl::StrCat("attendant ", side_.AttendantText(slot), " attached"));
        break;
      case AttendantChange::kLeft:
        rpcs_->Stop(caller);
        Log(absl::StrCat("attendant ", side_.AttendantText(slot), " left"));
        break;
    }
  }
  ServeRpcs();
}

void EngineHost::ServeRpcs() {
  std::array<bool, kCallers> ran;
  for (size_t caller = 0; caller < kCallers; ++caller) {
    ran[caller] = rpcs_->IsRunning(caller);
  }
  const RpcHost::More more = rpcs_->Poll(MonotonicNanos());
  if (more.client) side_.PollRpcsAgain();
  if (more.attendants) side_.PollAttendantsAgain();
  side_.ShowDroppedMessages(rpcs_->dropped());
  for (size_t caller = 0; caller < kCallers; ++caller) {
    if (ran[caller] && !rpcs_->IsRunning(caller)) LogBrokenRings(caller);
  }
}

std::string EngineHost::CallerText(size_t caller) const {
  return caller == kClientCaller
             ? "the client"
             : "attendant " + side_.AttendantText(caller - 1);
}

void EngineHost::LogBrokenRings(size_t caller) {
  Log(absl::StrCat("RPCs: the rings of ", CallerText(caller),
                   " are invalid; none is answered"));
}

void EngineHost::LogPause(bool begun, size_t caller) const {
  Log(begun ? absl::StrCat("paused by ", CallerText(caller))
            : absl::StrCat("the pause of ", CallerText(caller), " has ended"));
}

}  // namespace tandem
