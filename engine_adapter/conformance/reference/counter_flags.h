// CounterOptions: the flags of the reference engine's servers.
//
// Data flow: command line -> flags -> CounterOptions -> CounterEngine.
//
//   std::make_unique<CounterEngine>(CounterOptions(server_options));

#ifndef TANDEM_ENGINE_ADAPTER_CONFORMANCE_REFERENCE_COUNTER_FLAGS_H_
#define TANDEM_ENGINE_ADAPTER_CONFORMANCE_REFERENCE_COUNTER_FLAGS_H_

#include "engine_adapter/conformance/reference/counter_engine.h"
#include "engine_adapter/server_main.h"

namespace tandem {

// Returns the values of the flags.
CounterEngine::Options CounterOptions(const ServerOptions& server);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CONFORMANCE_REFERENCE_COUNTER_FLAGS_H_
