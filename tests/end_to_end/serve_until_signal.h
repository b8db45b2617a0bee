// ServeUntilSignal: the complete main function of a test's engine process.
//
// Data flow: Engine -> EngineHost -> clients, until SIGTERM or SIGINT.
//
//   ChildProcess child([&] { return ServeUntilSignal(&engine, options); });

#pragma once

#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"

namespace tandem {

// Returns the process's exit code: 0 after a clean stop, 1 if creating the
// region failed, with a line on stderr. Call it once in a process.
int ServeUntilSignal(Engine* engine, EngineHost::Options options);

}  // namespace tandem
