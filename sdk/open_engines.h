// OpenEngines: the table of the engines' handles.
//
// Data flow: tandem_engine_create or tandem_serve -> Add; every function of an
// engine -> Enter.
//
//   const OpenEngines::Use use = OpenEngines::Get().Enter(handle);
//   if (use) use->engine->host().RequestStop();

#ifndef TANDEM_SDK_OPEN_ENGINES_H_
#define TANDEM_SDK_OPEN_ENGINES_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/fork_guard.h"
#include "sdk/foreign_engine.h"
#include "sdk/handle_table.h"
#include "sdk/tandem.h"

struct tandem_engine;  // only a handle

namespace tandem {

// What a handle leads to.
struct OpenEngine {
  // tandem_serve's is not owned.
  std::shared_ptr<ForeignEngine> engine;
  // Its host, once that calls the engine: after the first tandem_engine_poll,
  // and in the process that made the engine.
  EngineHost* polled = nullptr;
  const uint32_t born_in = ForkCount();
  // The thread inside a call that needs the engine alone; 0: none. A thread
  // finds only itself here for certain.
  std::atomic<uintptr_t> caller{0};
};

class OpenEngines : public HandleTable<OpenEngine, tandem_engine> {
 public:
  static OpenEngines& Get() { return table_; }

  // kInvalidArgument: too many engines.
  absl::Status Open(std::shared_ptr<ForeignEngine> engine,
                    tandem_engine** handle) {
    [[maybe_unused]] static const bool kRegistered = [] {
      AfterForkInChild([] {
        Get().ForEach([](OpenEngine& forked) { forked.polled = nullptr; });
      });
      return true;
    }();
    auto open = std::make_unique<OpenEngine>();
    open->engine = std::move(engine);
    *handle = Add(std::move(open));
    if (*handle != nullptr) return absl::OkStatus();
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected fewer than ", kSlots,
                     " engines in a process, found as many; destroy one"));
  }

 private:
  static OpenEngines table_;
};
// Constant-initialised, unless Mutex is not (base/mutex.h).
inline OpenEngines OpenEngines::table_;

}  // namespace tandem

#endif  // TANDEM_SDK_OPEN_ENGINES_H_
