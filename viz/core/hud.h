// The words and numbers laid over a picture.
//
// Data flow: metrics, ages, rates -> short texts. Plain functions; they
// allocate their result only.
//
//   HudText({1.5, 20, 400});  // "reward: 1.50\nreturn: 20.00\nstep/sec: 400.0"
//   AgeText(2'340'000'000);   // "2.3 s"

#ifndef TANDEM_VIZ_CORE_HUD_H_
#define TANDEM_VIZ_CORE_HUD_H_

#include <cstdint>
#include <string>

namespace tandem {

// The seed's three lines, to the letter; nan and inf as Python prints them.
std::string HudText(double last_reward, double rolling_return,
                    double step_rate_hz);

// "16 ms", "2.3 s", "4 min", "3 h": two figures or so, never more than eight
// characters for what is younger than 1,000 hours.
std::string AgeText(int64_t age_ns);

// "1,234,567".
std::string CountText(uint64_t count);

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_HUD_H_
