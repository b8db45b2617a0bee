// Gateway: what the gRPC services share.
//
// Data flow: a call -> a queue's thread -> EngineLink or ClientSlot -> its
// answer.
// Ownership: main. The server must have ended before its destruction.

#pragma once

#include <cstddef>
#include <string>

#include "base/work_queue.h"
#include "gateway/client_slot.h"
#include "gateway/connections.h"
#include "gateway/engine_link.h"
#include "gateway/relay_stream.h"

namespace tandem::gateway {

struct Gateway {
  struct Options {
    std::string region;
    double release_secs = 60;  // ClientSlot's
  };
  static constexpr size_t kCallThreads = 8;
  // The maximum of calls that wait for a thread; further ones get
  // RESOURCE_EXHAUSTED.
  static constexpr size_t kMostWaiting = 256;
  // Each has a thread. Further ones get RESOURCE_EXHAUSTED.
  static constexpr size_t kMostStreams = 32;

  explicit Gateway(const Options& options)
      : link(options.region),
        slot(&link, options.region, options.release_secs) {}

  // A program's connection has ended. The last one that has stepped releases
  // the client slot. Does not block.
  void ConnectionEnded(const std::string& peer) {
    if (!connections.End(peer)) return;
    steps.AddFirst([this] {
      if (!connections.AnySteps()) slot.Release();
    });
  }

  EngineLink link;
  ClientSlot slot;
  Connections connections;
  // Last: their threads use the others.
  WorkQueue calls{kCallThreads, kMostWaiting};
  WorkQueue steps{1, kMostWaiting};
  StreamPlaces streams{kMostStreams, kMostWaiting};
};

}  // namespace tandem::gateway
