#include "viz/core/hud.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem {
namespace {

// As the seed formats it, but where that would be hundreds of digits.
std::string Number(double value, int decimals) {
  if (std::isnan(value)) return "nan";  // never with a sign, as Python has it
  return std::abs(value) < 1e15 || std::isinf(value)
             ? absl::StrFormat("%.*f", decimals, value)
             : absl::StrFormat("%.6g", value);
}

}  // namespace

std::string HudText(double last_reward, double rolling_return,
                    double step_rate_hz) {
  return absl::StrCat("reward: ", Number(last_reward, 2),
                      "\nreturn: ", Number(rolling_return, 2),
                      "\nstep/sec: ", Number(step_rate_hz, 1));
}

std::string AgeText(int64_t age_ns) {
  const double secs = static_cast<double>(age_ns) * 1e-9;
  if (secs < 0.9995) return absl::StrFormat("%.0f ms", secs * 1e3);
  if (secs < 99.95) return absl::StrFormat("%.1f s", secs);
  const int64_t minutes = static_cast<int64_t>(secs) / 60;
  if (minutes < 100) return absl::StrCat(minutes, " min");
  return absl::StrCat(minutes / 60, " h");
}

std::string CountText(uint64_t count) {
  std::string text = absl::StrCat(count);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

}  // namespace tandem
