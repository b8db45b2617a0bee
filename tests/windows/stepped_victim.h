// SteppedVictim: a child of a test that is stopped after any number of the
// instructions of what it does.
//
// Data flow: a child calls Begin -> the processor traps behind each of its
// instructions -> the n-th kills or freezes it there.
// Ownership: the child's main thread. Instructions of Wine's own Unix side, and
// of the kernel, are not counted.
//
//   StepUntil(100, Stop::kKill);   // in the child
//   client->Step(actions, 20);
//   EndStepping();                 // fewer instructions: it lives

#pragma once

#include <string>

namespace tandem {

enum class Stop { kKill, kFreeze };

// kFreeze: prints the line "frozen", then waits until Thaw in the test.
// `event` is the same name for both.
void StepUntil(int instructions, Stop stop, const std::string& event);
void EndStepping();

// For the test: prepares the event before the child starts, and sets it.
class Thaw {
 public:
  explicit Thaw(const std::string& event);
  ~Thaw();
  void Now();

 private:
  void* event_;
};

}  // namespace tandem
