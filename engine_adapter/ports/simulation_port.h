// SimulationPort: control of an engine's loop for the RPC services.
//
// Data flow: services agent and scene -> SimulationPort -> EngineHost's loop.
// Ownership: the host owns it; the stepping thread calls it between exchanges.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
enum class SimulationMode : uint8_t;
}  // namespace tandem::rpc

namespace tandem {

class StateRows;

class SimulationPort {
 public:
  virtual ~SimulationPort() = default;

  // Whether the engine is at work: until that ends, services use none of its
  // ports.
  virtual bool busy() const = 0;

  virtual rpc::SimulationMode mode() const = 0;
  // Simulated seconds for each second of the wall clock; 1 except in REALTIME.
  virtual double realtime_factor() const = 0;
  // `realtime_factor`, of REALTIME only: above 0; the caller checks its range.
  // kUnsupported for REALTIME if the engine's step length is unknown, or if the
  // engine has fields.
  virtual absl::Status SetMode(rpc::SimulationMode mode,
                               double realtime_factor) = 0;

  virtual bool paused() const = 0;
  // Each call ends a SingleStep in progress, for either value of `paused`.
  virtual void SetPaused(bool paused) = 0;

  // The number of the caller that makes the next calls: 0 the client, others
  // attendants.
  virtual void SetCaller(size_t caller) = 0;
  // The caller has left: ends its pause and its SingleStep.
  virtual void CallerLeft(size_t caller) = 0;

  // Steps a paused engine `steps` times; the engine answers commands in
  // between. `done` gets the number of steps done, which is lower if SetPaused
  // ended them. Errors: kInvalidArgument if the engine is not paused, or a
  // SingleStep is in progress; kUnsupported if the engine has fields.
  virtual absl::Status SingleStep(
      uint32_t steps, std::function<void(absl::StatusOr<uint32_t>)> done) = 0;

  // Starts a new episode in each of these environments now. With a seed,
  // environment i gets the seed *seed + i. The client sees the result in its
  // next exchange. `done` gets the engine's result, now or later; until then
  // the host answers no call that needs the engine. kUnsupported if the engine
  // has fields.
  virtual void Reset(std::span<const uint32_t> envs,
                     std::optional<uint64_t> seed,
                     std::function<void(absl::Status)> done) = 0;

  // The rows of saved states; nullptr: the loop keeps none.
  virtual StateRows* state_rows() { return nullptr; }

  // The number of answered exchanges, as in the region.
  virtual uint64_t frame_seq() const = 0;
  // The number of steps, with and without an exchange.
  virtual uint64_t steps() const = 0;

  // A counter of possible changes of the environments. It grows with each
  // exchange, step, reset and NoteChange.
  virtual uint64_t changes() const = 0;
  // A service calls this after its command has changed an environment.
  virtual void NoteChange() = 0;
};

}  // namespace tandem
