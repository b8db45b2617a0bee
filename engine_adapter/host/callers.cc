#include "engine_adapter/host/callers.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "engine_adapter/services/rpc_host.h"
#include "schema/layout/attendant_slot.h"
#include "transport/frames/image_slot.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {

Callers::Callers(const RpcConfig& config, EngineBase* engine,
                 SimulationPort* simulation, OwnerSide* side, LiveScene* scene,
                 LogLine log)
    : side_(side),
      log_(std::move(log)),
      rpcs_(std::make_unique<RpcHost>(
          config, engine, simulation,
          RpcHost::Links{
              .wake = [side] { side->WakeStepThread(); },
              .client_text =
                  [side] { return side->ClientText(MonotonicNanos()); },
              .switched =
                  [this] { side_->ShowServices(rpcs_->enabled_services()); },
              .image_place =
                  [side](size_t caller) {
                    // No other process has the region yet.
                    return ImagePlace::Of(side->mapping(),
                                          *side->mapping()->header(), caller);
                  },
              .live_scene = scene})) {
  side_->ShowServices(rpcs_->enabled_services());
}

Callers::~Callers() = default;

void Callers::ClientArrived() {
  Begin(kClientCaller, side_->RpcRingReader(), side_->RpcRingWriter());
}

void Callers::ClientLeft() { rpcs_->Stop(kClientCaller); }

void Callers::Begin(size_t caller, absl::StatusOr<RingReader> reader,
                    absl::StatusOr<RingWriter> writer) {
  if (!reader.ok() || !writer.ok()) {
    LogBrokenRings(caller);
    return;
  }
  rpcs_->Start(caller, EnvelopeReader(*std::move(reader), {}),
               EnvelopeWriter(*std::move(writer)));
}

void Callers::ServeBesideExchange() {
  (void)side_->PollRpcs();
  if (side_->PollAttendants()) {
    ServeAttendants();
  } else {
    Serve();
  }
}

void Callers::ServeAttendants() {
  for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
    const size_t caller = kClientCaller + 1 + slot;
    switch (side_->PollAttendant(slot)) {
      case AttendantChange::kNone:
        break;
      case AttendantChange::kArrived:
        rpcs_->Stop(caller);
        Begin(caller, side_->AttendantRingReader(slot),
              side_->AttendantRingWriter(slot));
        side_->WelcomeAttendant(slot);
        log_(absl::StrCat("attendant ", side_->AttendantText(slot),
                          " attached"));
        break;
      case AttendantChange::kLeft:
        rpcs_->Stop(caller);
        log_(absl::StrCat("attendant ", side_->AttendantText(slot), " left"));
        break;
    }
  }
  Serve();
}

void Callers::Serve() {
  std::array<bool, kCallers> ran;
  for (size_t caller = 0; caller < kCallers; ++caller) {
    ran[caller] = rpcs_->IsRunning(caller);
  }
  const RpcHost::More more = rpcs_->Poll(MonotonicNanos());
  if (more.client) side_->PollRpcsAgain();
  if (more.attendants) side_->PollAttendantsAgain();
  side_->ShowDroppedMessages(rpcs_->dropped());
  for (size_t caller = 0; caller < kCallers; ++caller) {
    if (ran[caller] && !rpcs_->IsRunning(caller)) LogBrokenRings(caller);
  }
}

bool Callers::IsQuiet() const { return rpcs_->IsQuiet(); }

std::optional<int64_t> Callers::DueNs() const {
  if (rpcs_->IsQuiet()) return std::nullopt;
  return rpcs_->DueNs(MonotonicNanos());
}

absl::Status Callers::EnableLater(Service service, bool enabled) {
  return rpcs_->EnableLater(service, enabled);
}

std::string Callers::TextOf(size_t caller) const {
  return caller == kClientCaller
             ? "the client"
             : "attendant " + side_->AttendantText(caller - 1);
}

void Callers::LogBrokenRings(size_t caller) const {
  log_(absl::StrCat("RPCs: the rings of ", TextOf(caller),
                    " are invalid; none is answered"));
}

void Callers::LogPause(bool begun, size_t caller) const {
  log_(begun ? absl::StrCat("paused by ", TextOf(caller))
             : absl::StrCat("the pause of ", TextOf(caller), " has ended"));
}

}  // namespace tandem
