#include "tests/faults/every_access.h"

#include <elf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::abort();
}

// The kernel neither makes nor restarts this system call.
constexpr uint64_t kNoCall = ~uint64_t{0};

// An instruction for system calls has the same address in a forked victim.
struct Registers : user_regs_struct {
#ifdef __x86_64__
  static constexpr int kCallBytes = 2;
  [[gnu::naked, gnu::noinline]] static void Call() { asm("syscall\n ret"); }
  uint64_t Pc() const { return rip; }
  uint64_t Stack() const { return rsp; }
  uint64_t Number() const { return orig_rax; }  // of a call, at its ends
  uint64_t Result() const { return rax; }
  uint64_t First() const { return rdi; }  // argument, at the entry
  uint64_t Third() const { return rdx; }
  void SetCall(uint64_t from, uint64_t number, uint64_t first) {
    rip = from, rax = number, orig_rax = kNoCall, rdi = first;
  }
  void SetOthers(uint64_t second, uint64_t third) { rsi = second, rdx = third; }
#else
  static constexpr int kCallBytes = 4;
  static void Call() { asm("svc #0"); }
  uint64_t Pc() const { return pc; }
  uint64_t Stack() const { return sp; }
  uint64_t Number() const { return regs[8]; }
  uint64_t Result() const { return regs[0]; }
  uint64_t First() const { return regs[0]; }
  uint64_t Third() const { return regs[2]; }
  void SetCall(uint64_t from, uint64_t number, uint64_t first) {
    pc = from, regs[8] = number, regs[0] = first;
  }
  void SetOthers(uint64_t second, uint64_t third) {
    regs[1] = second, regs[2] = third;
  }
#endif
};

// The shared mappings of one stopped victim.
class ProtectedVictim {
 public:
  // `usual`: the protection while it runs, PROT_READ or PROT_NONE.
  ProtectedVictim(Victim* victim, int usual) : victim_(*victim), usual_(usual) {
    FindMappings();
    Protect(usual_);
  }
  ProtectedVictim(const ProtectedVictim&) = delete;
  ProtectedVictim& operator=(const ProtectedVictim&) = delete;
  // The victim may run freely again.
  ~ProtectedVictim() {
    if (!victim_.gone()) Protect(PROT_READ | PROT_WRITE);
  }

  enum class Stop { kAccess, kCall, kEnd };
  // Runs it up to just before its next access that `usual` forbids, or to the
  // entry to its next system call. kEnd: it is at its mark or has exited.
  Stop Run() {
    for (;;) {
      const int signal = victim_.ResumeToStop(PTRACE_SYSCALL);
      if (signal == 0) return Stop::kEnd;
      if (signal == SIGSEGV) return Stop::kAccess;
      if (signal != (SIGTRAP | 0x80)) continue;  // a signal that it ignores
      in_call_ = !in_call_;
      if (!in_call_) {
        AfterCall();
        continue;
      }
      first_ = Read().First();
      return Stop::kCall;
    }
  }
  EveryAccess::Place PlaceOfCall() {
    const Registers call = Read();
    return {stores_, call.Pc(), call.Stack(),
            ++calls_[{stores_, call.Pc(), call.Stack()}]};
  }
  // Moves it back from the entry to before the call's instruction.
  void LeaveCall() {
    const uint64_t number = Read().Number();
    SkipCall();
    if (victim_.ResumeToStop(PTRACE_SYSCALL) != (SIGTRAP | 0x80)) Fail("exit");
    in_call_ = false;
    Repeat(number);
  }
  // Lets it make this access if it is a load. False: it is a store, and the
  // victim is still before it.
  bool TryLoad() {
    if (protection_ == PROT_NONE) Protect(PROT_READ);
    if (!StepOver()) return false;
    Protect(usual_);
    return true;
  }
  void Store() {
    Protect(PROT_READ | PROT_WRITE);
    if (!StepOver()) Fail("a fault of the victim");
    Protect(usual_);
    ++stores_;
  }
  EveryAccess::Place PlaceOfAccess() const {
    siginfo_t fault = {};
    if (ptrace(PTRACE_GETSIGINFO, victim_.pid(), nullptr, &fault) != 0) {
      Fail("PTRACE_GETSIGINFO");
    }
    const auto address = reinterpret_cast<uint64_t>(fault.si_addr);
    for (const Mapping& mapping : mappings_) {
      if (address - mapping.start >= mapping.bytes) continue;
      return {stores_, Read().Pc(), address - mapping.start};
    }
    Fail("a fault of the victim outside shared memory");
  }

 private:
  struct Mapping {
    uint64_t start;
    uint64_t bytes;
  };

  Registers Read() const {
    Registers registers = {};
    Transfer(PTRACE_GETREGSET, NT_PRSTATUS, &registers, sizeof(registers));
    return registers;
  }
  void Write(Registers registers) const {
    Transfer(PTRACE_SETREGSET, NT_PRSTATUS, &registers, sizeof(registers));
  }
  void Transfer(__ptrace_request request, uintptr_t set, void* registers,
                size_t bytes) const {
    iovec where = {registers, bytes};
    if (ptrace(request, victim_.pid(), set, &where) != 0) Fail("registers");
  }
  // At the entry to a system call.
  void SkipCall() const {
#ifdef __x86_64__
    Registers call = Read();
    call.orig_rax = kNoCall;
    Write(call);
#else
    int number = static_cast<int>(kNoCall);
    Transfer(PTRACE_SETREGSET, NT_ARM_SYSTEM_CALL, &number, sizeof(number));
#endif
  }
  // Runs one instruction. False: it has faulted, without an effect.
  bool StepOver() {
    const int signal = victim_.ResumeToStop(PTRACE_SINGLESTEP);
    if (signal != SIGTRAP && signal != SIGSEGV) Fail("single step");
    return signal == SIGTRAP;
  }

  // The victim calls mprotect(2) for the test.
  void Protect(int protection) {
    const Registers before = Read();
    for (const Mapping& mapping : mappings_) {
      Registers call = before;
      call.SetCall(reinterpret_cast<uint64_t>(&Registers::Call), SYS_mprotect,
                   mapping.start);
      call.SetOthers(mapping.bytes, static_cast<uint64_t>(protection));
      Write(call);
      if (!StepOver() || Read().Result() != 0) Fail("mprotect in the victim");
    }
    Write(before);
    protection_ = protection;
  }
  // Those that it may write. Protected ones are found by their addresses.
  void FindMappings() {
    std::ifstream maps("/proc/" + std::to_string(victim_.pid()) + "/maps");
    std::vector<Mapping> found;
    for (std::string line; std::getline(maps, line);) {
      std::istringstream words(line);
      Mapping mapping = {};
      uint64_t end = 0;
      char dash = 0;
      std::string permissions;
      words >> std::hex >> mapping.start >> dash >> end >> permissions;
      mapping.bytes = end - mapping.start;
      if (line.find(" /dev/shm/") == std::string::npos) continue;
      if (permissions == "rw-s" || Has(mapping)) found.push_back(mapping);
    }
    mappings_ = std::move(found);
  }
  bool Has(const Mapping& wanted) const {
    for (const Mapping& mapping : mappings_) {
      if (mapping.start == wanted.start) return true;
    }
    return false;
  }
  // At the exit from a system call: it is made next.
  void Repeat(uint64_t number) const {
    Registers call = Read();
    call.SetCall(call.Pc() - Registers::kCallBytes, number, first_);
    Write(call);
  }
  // At the exit from a system call.
  void AfterCall() {
    const Registers call = Read();
    const bool populates =  // the last call of RegionMapping::Map
        call.Number() == SYS_madvise && call.Third() == MADV_POPULATE_WRITE;
    if (populates || call.Number() == SYS_munmap) {
      FindMappings();
      Protect(usual_);
    } else if (static_cast<int64_t>(call.Result()) == -EFAULT) {
      // The kernel reads a word of shared memory: a futex.
      Protect(PROT_READ | PROT_WRITE);
      Repeat(call.Number());
      for (const char* stop : {"entry", "exit"}) {
        const int signal = victim_.ResumeToStop(PTRACE_SYSCALL);
        if (signal != (SIGTRAP | 0x80)) Fail(stop);
      }
      Protect(usual_);
    }
  }

  Victim& victim_;
  const int usual_;
  int protection_ = PROT_READ | PROT_WRITE;
  bool in_call_ = false;
  uint64_t first_ = 0;  // argument of the call, which its result may replace
  uint64_t stores_ = 0;
  std::map<EveryAccess::Place, uint64_t> calls_;  // from each place, so far
  std::vector<Mapping> mappings_;
};

}  // namespace

bool EveryAccess::AdvanceToNew(Victim& victim,
                               const std::function<bool()>& done) {
  constexpr int kAfterDone = 100;
  constexpr uint64_t kRepeatedCalls = 4;
  int after_done = 0;
  // A victim that polls makes no stores, and is stopped for `done` all the
  // same.
  const bool sees_loads = kind_ == kLoadsAndStores || done != nullptr;
  ProtectedVictim shared(&victim, sees_loads ? PROT_NONE : PROT_READ);
  using Stop = ProtectedVictim::Stop;
  for (Stop stop; (stop = shared.Run()) != Stop::kEnd;) {
    if (done != nullptr && done() && ++after_done > kAfterDone) {
      if (stop == Stop::kCall) shared.LeaveCall();
      return false;
    }
    if (stop == Stop::kCall) {
      const Place place = shared.PlaceOfCall();
      if (place.back() > kRepeatedCalls) continue;
      if (!IsStop(place)) continue;
      shared.LeaveCall();
      return true;
    }
    const Place place = shared.PlaceOfAccess();
    if (kind_ == kStores && sees_loads && shared.TryLoad()) continue;
    if (IsStop(place)) return true;
    if (kind_ == kLoadsAndStores && shared.TryLoad()) continue;
    shared.Store();
  }
  return false;
}

#else

bool EveryAccess::AdvanceToNew(Victim&, const std::function<bool()>&) {
  return false;
}

#endif

}  // namespace tandem
