// CounterOptions: the flags of the reference engine's servers.
//
// Data flow: command line -> flags -> CounterOptions -> CounterEngine.
//
//   std::make_unique<CounterEngine>(CounterOptions(server_options));

#pragma once

#include "engine_adapter/conformance/reference/counter_engine.h"
#include "engine_adapter/server_main.h"

namespace tandem {

// Returns the values of the flags.
CounterEngine::Options CounterOptions(const ServerOptions& server);

}  // namespace tandem
