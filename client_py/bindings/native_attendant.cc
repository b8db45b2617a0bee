#include "client_py/bindings/native_attendant.h"

#include <utility>

#include "absl/status/statusor.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/waiting.h"

namespace tandem {
namespace {

std::unique_ptr<AttendantSide> AttachOrRaise(const std::string& name,
                                             const std::string& label,
                                             double timeout_secs) {
  absl::StatusOr<std::unique_ptr<AttendantSide>> side = WithoutGil([&] {
    return AttendantSide::Attach(name, {.label = label,
                                        .timeout_secs = timeout_secs,
                                        .interrupted = PythonInterrupts});
  });
  RaiseWhatPythonRaised();
  if (!side.ok()) Raise(side.status(), name);
  return *std::move(side);
}

}  // namespace

NativeAttendant::NativeAttendant(const std::string& name,
                                 const std::string& label, double timeout_secs)
    : side_(AttachOrRaise(name, label, timeout_secs)),
      rpc_(side_.get(), timeout_secs) {}

void NativeAttendant::Close() {
  if (std::exchange(closed_, true)) return;
  rpc_.EndSession();
  side_->Close();
}

}  // namespace tandem
