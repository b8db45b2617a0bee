// Numbers as text for users: durations, ages, bytes, counts, metrics.
//
//   DurationText(552'300)       // "552 us", of nanoseconds
//   ShortAgeText(2'340'000'000) // "2.3 s", of nanoseconds
//   BytesText(8192)             // "8.00 KiB"
//   CountText(12345)            // "12,345"

#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// Three digits, in ns, us, ms or s; whole seconds from 100 s on.
std::string DurationText(double ns);

// "2 h 3 min": the two largest units.
std::string AgeText(double secs);

// "16 ms", "2.3 s", "4 min", "3 h": about two digits, and at most eight
// characters below 1,000 hours.
std::string ShortAgeText(int64_t age_ns);

std::string BytesText(uint64_t bytes);

// Commas separate groups of three digits.
std::string CountText(uint64_t count);

// As CountText, for any number, rounded.
std::string RoundedText(double number);

// Returns MOSAIC's three lines on an image, character by character:
// "reward: 1.50\nreturn: 20.00\nstep/sec: 400.0". NaN is an unknown number,
// "-"; inf is as in Python.
std::string HudText(double last_reward, double rolling_return,
                    double step_rate_hz);

}  // namespace tandem
