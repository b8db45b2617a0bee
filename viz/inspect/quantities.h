// Numbers as people read them: durations, bytes, counts.
//
//   DurationText(552'300)  // "552 us", of nanoseconds
//   BytesText(8192)        // "8.00 KiB"
//   CountText(12345)       // "12,345"

#ifndef TANDEM_VIZ_INSPECT_QUANTITIES_H_
#define TANDEM_VIZ_INSPECT_QUANTITIES_H_

#include <cstdint>
#include <string>

namespace tandem {

// Three digits, in ns, us, ms or s; from 100 s on in whole seconds.
std::string DurationText(double ns);

// "2 h 3 min": the two largest units, for ages.
std::string AgeText(double secs);

std::string BytesText(uint64_t bytes);

// With a comma before each three digits.
std::string CountText(uint64_t count);

// The same of a number that is not whole, as large as it may be.
std::string RoundedText(double number);

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_QUANTITIES_H_
