// What a serving program does with the system's signals and streams.
//
// Data flow: a user, a terminal or a service manager -> the kernel -> the
// program, which blocks or handles the stop signals.
//
//   PrepareServer();
//   HandleStopSignals([](int) { stop.store(true); });

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns the signals that end a program in order: SIGINT, SIGTERM and SIGHUP;
// without SIGHUP if this process ignores it, as after nohup: the end of the
// terminal then ends no program.
std::vector<int> StopSignals();

// For main's first line:
//  - Opens the standard streams that are closed: else a region's descriptor
//    could become one, and the log would overwrite the region.
//  - Unblocks the stop signals, which a child inherits blocked from a
//    launcher's thread.
//  - Makes writes into a closed pipe, and those beyond a limit on the size of
//    files, errors instead of signals that end the process.
void PrepareServer();

// Calls `handler` for each stop signal, in the thread that gets it. Process 1
// of a container needs it: the kernel passes only handled signals to it.
void HandleStopSignals(void (*handler)(int signal));

// Ends this process as the signal does without a handler; process 1 of a
// container by exit code 128 + signal. Legal in a handler.
[[noreturn]] void EndBySignal(int signal);

// Returns "Terminated", for log lines.
std::string DescribeSignal(int signal);

// Hides an inherited descriptor from this process's children. Returns false if
// it is not open; errno has the reason.
bool HideFromChildren(int handle);

// Returns the local time of day, "13:05:59.042", for log lines.
std::string TimeOfDay();

// Writes the text by one call, so that lines of several processes do not mix.
void WriteToStandardError(absl::string_view text);

}  // namespace tandem
