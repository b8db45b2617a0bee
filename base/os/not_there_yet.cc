// The layer on a system that has no folder of sources here yet: what stands on
// it compiles. A call ends the program or gives an error, with its name, or
// returns what its header calls unknown.
//
// tools/check compiles base, schema and transport with it for macOS. A port
// replaces it by a folder as linux and windows.
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/blocked_signals.h"
#include "base/os/current_user.h"
#include "base/os/foreign_descriptor.h"
#include "base/os/fork_guard.h"
#include "base/os/launcher_watch.h"
#include "base/os/machine.h"
#include "base/os/process_handle.h"
#include "base/os/shared_region.h"
#include "base/os/side_locks.h"
#include "base/os/stop_signals.h"
#include "base/os/unique_fd.h"
#include "base/os/word_sleep.h"

namespace tandem {
namespace {

absl::Status NotThereYet(absl::string_view call) {
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat(call,
                                " is not there yet on this system; next: "
                                "use Linux"));
}

[[noreturn]] void EndAt(absl::string_view call) {
  std::fprintf(stderr, "tandem: %s\n", NotThereYet(call).ToString().c_str());
  std::abort();
}

}  // namespace

// available_memory.h

uint64_t MemoryLimit::available_bytes() const {
  EndAt("MemoryLimit::available_bytes");
}
std::optional<MemoryLimit> TightestMemoryLimit(const ControlGroupPaths&) {
  return std::nullopt;
}
uint64_t AvailableMemoryBytes(const ControlGroupPaths&) {
  EndAt("AvailableMemoryBytes");
}
uint64_t ResidentMemoryBytes() { return 0; }
absl::Status CheckMemory(uint64_t, absl::string_view, absl::string_view,
                         const ControlGroupPaths&) {
  return NotThereYet("CheckMemory");
}

// blocked_signals.h

BlockedSignals::BlockedSignals() { EndAt("BlockedSignals"); }
BlockedSignals::~BlockedSignals() { EndAt("BlockedSignals"); }

// current_user.h

bool IsCurrentUser(const Owner&) { EndAt("IsCurrentUser"); }
bool IsTrusted(const Owner&) { EndAt("IsTrusted"); }
std::string DescribeUser(const Owner&) { EndAt("DescribeUser"); }
std::optional<std::string> HomeFolder(const std::string&) {
  return std::nullopt;
}
bool MayRead(const std::string&) { EndAt("MayRead"); }
bool MayRun(const std::string&) { EndAt("MayRun"); }

// foreign_descriptor.h

absl::StatusOr<UniqueFd> TakeDescriptor(uint32_t, uint32_t,
                                        const SharedRegion::Id&) {
  return NotThereYet("TakeDescriptor");
}

// fork_guard.h

namespace fork_guard_internal {
std::atomic<uint32_t> fork_count{0};
}
void AfterForkInChild(void (*)()) { EndAt("AfterForkInChild"); }

// launcher_watch.h

LauncherWatch::LauncherWatch(int, std::function<void()>, std::function<void()>)
    : born_in_(0) {
  EndAt("LauncherWatch");
}
LauncherWatch::~LauncherWatch() { EndAt("LauncherWatch"); }
bool LauncherWatch::HasLeft() const { EndAt("LauncherWatch::HasLeft"); }

// machine.h

void YieldCore() { EndAt("YieldCore"); }
int CurrentCore() { return -1; }
OnCore::OnCore(int) : core_(-1) {}
OnCore::~OnCore() = default;
bool IsRealTimeThread() { EndAt("IsRealTimeThread"); }
int AllowedCores() { return 0; }
int UsableCores() { EndAt("UsableCores"); }
uint64_t SharedCacheBytes() { return 0; }
bool KernelTellsTimeByCounter() { return false; }
void FillRandom(std::span<std::byte>) { EndAt("FillRandom"); }
void NameThread(const char*) {}
void GoToBackground() {}
CoreWait::CoreWait() = default;
int64_t CoreWait::Nanos() const { return 0; }

// process_handle.h

uint32_t ProcessId() { EndAt("ProcessId"); }
std::string ProgramPath() { return ""; }
InputWait WaitForInput(int, int64_t) { EndAt("WaitForInput"); }
absl::StatusOr<ProcessHandle> ProcessHandle::Start(
    const std::vector<std::string>&) {
  return NotThereYet("ProcessHandle::Start");
}
std::string ProcessHandle::ReadFirstLine() {
  EndAt("ProcessHandle::ReadFirstLine");
}
ProcessEnd ProcessHandle::Stop(double) { EndAt("ProcessHandle::Stop"); }

// shared_region.h

std::string RegionPath(absl::string_view name, SharedRegion::Link) {
  return std::string(name);
}
absl::Status SharedRegion::CheckRoom(uint64_t, const Texts&) {
  return NotThereYet("SharedRegion::CheckRoom");
}
absl::StatusOr<SharedRegion> SharedRegion::Create(uint64_t, bool,
                                                  const Texts&) {
  return NotThereYet("SharedRegion::Create");
}
absl::StatusOr<SharedRegion> SharedRegion::Open(absl::string_view, Access,
                                                Link) {
  return NotThereYet("SharedRegion::Open");
}
absl::StatusOr<SharedRegion> SharedRegion::OfHandle(int) {
  return NotThereYet("SharedRegion::OfHandle");
}
std::optional<SharedRegion::Id> SharedRegion::At(absl::string_view, Link) {
  EndAt("SharedRegion::At");
}
std::optional<Owner> SharedRegion::OwnerAt(absl::string_view, Link) {
  EndAt("SharedRegion::OwnerAt");
}
std::vector<SharedRegion::Listed> SharedRegion::List() {
  EndAt("SharedRegion::List");
}
bool SharedRegion::Read(uint64_t, void*, size_t) const {
  EndAt("SharedRegion::Read");
}
absl::Status SharedRegion::CheckTrust(absl::string_view) const {
  return NotThereYet("SharedRegion::CheckTrust");
}
absl::StatusOr<bool> SharedRegion::Publish(absl::string_view) const {
  return NotThereYet("SharedRegion::Publish");
}
void SharedRegion::Restore(absl::string_view) const {
  EndAt("SharedRegion::Restore");
}
absl::Status SharedRegion::Unpublish(absl::string_view) const {
  return NotThereYet("SharedRegion::Unpublish");
}
absl::StatusOr<std::byte*> SharedRegion::Map(uint64_t, Access) const {
  return NotThereYet("SharedRegion::Map");
}
void SharedRegion::Unmap(std::byte*, uint64_t) { EndAt("SharedRegion::Unmap"); }
uint64_t SharedRegion::HugePageBytes(const std::byte*) { return 0; }

// side_locks.h

std::optional<bool> IsLocked(const SharedRegion&, int64_t) {
  return std::nullopt;
}
absl::StatusOr<SideLocks> SideLocks::On(const SharedRegion&) {
  return NotThereYet("SideLocks::On");
}
SideLocks::SideLocks(SideLocks&&) noexcept { EndAt("SideLocks"); }
SideLocks& SideLocks::operator=(SideLocks&&) noexcept { EndAt("SideLocks"); }
bool SideLocks::TryAcquire(int64_t) { EndAt("SideLocks::TryAcquire"); }
bool SideLocks::TryShare(int64_t) { EndAt("SideLocks::TryShare"); }
bool SideLocks::HeldByOther(int64_t) const { EndAt("SideLocks::HeldByOther"); }
bool SideLocks::IsOurs() const { EndAt("SideLocks::IsOurs"); }
void SideLocks::Release() { EndAt("SideLocks::Release"); }

// stop_signals.h

std::vector<int> StopSignals() { EndAt("StopSignals"); }
void PrepareServer() { EndAt("PrepareServer"); }
void HandleStopSignals(void (*)(int)) { EndAt("HandleStopSignals"); }
[[noreturn]] void EndBySignal(int) { EndAt("EndBySignal"); }
std::string DescribeSignal(int) { EndAt("DescribeSignal"); }
bool HideFromChildren(int) { EndAt("HideFromChildren"); }
std::string TimeOfDay() { EndAt("TimeOfDay"); }
void WriteToStandardError(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// unique_fd.h

void CloseDescriptor(int) { EndAt("CloseDescriptor"); }

// word_sleep.h

bool SleepOnWord(uint32_t*, uint32_t, int64_t) { EndAt("SleepOnWord"); }
void WakeSleepers(uint32_t*) { EndAt("WakeSleepers"); }

}  // namespace tandem
