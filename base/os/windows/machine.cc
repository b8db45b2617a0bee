#include "base/os/machine.h"

#include <cpuid.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/os/windows/native.h"

// kernel32's, which mingw-w64's headers lack.
extern "C" __declspec(dllimport) HRESULT WINAPI
    SetThreadDescription(HANDLE thread, const wchar_t* name);

namespace tandem {
namespace {

// The cores of this process's first group of up to 64; 0: unknown.
DWORD_PTR ProcessCores() {
  DWORD_PTR process = 0;
  DWORD_PTR machine = 0;
  GetProcessAffinityMask(GetCurrentProcess(), &process, &machine);
  return process;
}

// Those of the calling thread.
DWORD_PTR ThreadCores() {
  GROUP_AFFINITY affinity = {};
  GetThreadGroupAffinity(GetCurrentThread(), &affinity);
  return affinity.Mask;
}

}  // namespace

void YieldCore() { SwitchToThread(); }

int CurrentCore() { return static_cast<int>(GetCurrentProcessorNumber()); }

OnCore::OnCore(int core) : core_(-1) {
  constexpr int kCores = 64;
  const DWORD_PTR before = ThreadCores();
  if (core < 0 || core >= kCores || (before >> core & 1) == 0) return;
  std::memcpy(before_, &before, sizeof(before));
  if (SetThreadAffinityMask(GetCurrentThread(), DWORD_PTR{1} << core) != 0) {
    core_ = core;
  }
}

OnCore::~OnCore() {
  if (core_ < 0 || ThreadCores() != DWORD_PTR{1} << core_) return;
  DWORD_PTR before;
  std::memcpy(&before, before_, sizeof(before));
  SetThreadAffinityMask(GetCurrentThread(), before);
}

bool IsRealTimeThread() {
  return GetPriorityClass(GetCurrentProcess()) == REALTIME_PRIORITY_CLASS;
}

int AllowedCores() {
  const DWORD_PTR thread = ThreadCores();
  return std::popcount(thread != 0 ? thread : ProcessCores());
}

int UsableCores() { return std::max(AllowedCores(), 1); }

uint64_t SharedCacheBytes() {
  DWORD bytes = 0;
  GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> rows(
      bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  if (!GetLogicalProcessorInformation(rows.data(), &bytes)) return 0;
  uint64_t found = 0;
  for (const auto& row : rows) {
    if (row.Relationship == RelationCache && row.Cache.Level == 3) {
      found = std::max<uint64_t>(found, row.Cache.Size);
    }
  }
  return found;
}

bool KernelTellsTimeByCounter() {
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantCounter = 1u << 8;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 &&
         (d & kInvariantCounter) != 0;
}

void FillRandom(std::span<std::byte> bytes) {
  if (!RtlGenRandom(bytes.data(), static_cast<ULONG>(bytes.size()))) {
    std::abort();
  }
}

void NameThread(const char* name) {
  (void)SetThreadDescription(GetCurrentThread(), Wide(name).c_str());
}

void GoToBackground() {
  SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST);
}

CoreWait::CoreWait() = default;
int64_t CoreWait::Nanos() const { return 0; }

}  // namespace tandem
