// CheckVersions: whether this daemon knows a worker's protocol and events.
// ToWorker: its capabilities.
//
// Data flow: RegisterWorkerRequest -> OK, or the refusal.
// Ownership: any thread.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"

namespace tandem::slow_lane {

// kFailedPrecondition, with both versions: the worker's protocol is neither
// empty nor MOSAIC/1.x, or its events have a newer schema (schema/telemetry).
absl::Status CheckVersions(
    const gymgui::trainer::RegisterWorkerRequest& request);

// Returns the request's capabilities, for the store and for display.
v1::RegisteredWorker ToWorker(
    const gymgui::trainer::RegisterWorkerRequest& request);

// Returns the worker's version, or this daemon's if the worker names none.
std::string AcceptedVersion(
    const gymgui::trainer::RegisterWorkerRequest& request);

}  // namespace tandem::slow_lane
