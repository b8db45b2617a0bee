#include "viz/core/quantities.h"

#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem {
namespace {

// Returns three digits, without an exponent.
std::string ThreeDigits(double value) {
  if (value >= 99.95) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.*f", value >= 9.995 ? 1 : 2, value);
}

// MOSAIC's format, except for numbers with many digits.
std::string Number(double value, int decimals) {
  if (std::isnan(value)) return "-";  // unknown
  return std::abs(value) < 1e15 || std::isinf(value)
             ? absl::StrFormat("%.*f", decimals, value)
             : absl::StrFormat("%.6g", value);
}

}  // namespace

std::string DurationText(double ns) {
  if (ns < 999.5) return absl::StrFormat("%.0f ns", ns);
  if (ns < 999.5e3) return absl::StrCat(ThreeDigits(ns / 1e3), " us");
  if (ns < 999.5e6) return absl::StrCat(ThreeDigits(ns / 1e6), " ms");
  return absl::StrCat(ThreeDigits(ns / 1e9), " s");
}

std::string AgeText(double secs) {
  constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {86'400, "d"}, {3'600, "h"}, {60, "min"}, {1, "s"}};
  const uint64_t whole = secs < 1e18 ? static_cast<uint64_t>(secs) : 0;
  for (size_t i = 0; i < 3; ++i) {
    const auto& [unit, name] = kUnits[i];
    if (whole < unit) continue;
    const auto& [next_unit, next_name] = kUnits[i + 1];
    return absl::StrCat(whole / unit, " ", name, " ", whole % unit / next_unit,
                        " ", next_name);
  }
  return absl::StrCat(whole, " s");
}

std::string ShortAgeText(int64_t age_ns) {
  const double secs = static_cast<double>(age_ns) * 1e-9;
  if (secs < 0.9995) return absl::StrFormat("%.0f ms", secs * 1e3);
  if (secs < 99.95) return absl::StrFormat("%.1f s", secs);
  const int64_t minutes = static_cast<int64_t>(secs) / 60;
  if (minutes < 100) return absl::StrCat(minutes, " min");
  return absl::StrCat(minutes / 60, " h");
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return absl::StrCat(ThreeDigits(value), " ", kUnits[unit]);
}

std::string CountText(uint64_t count) {
  std::string text = absl::StrCat(count);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string RoundedText(double number) {
  // Outside this range the conversion is undefined.
  return number >= 0 && number < 1e18
             ? CountText(static_cast<uint64_t>(std::round(number)))
             : absl::StrFormat("%.3g", number);
}

std::string HudText(double last_reward, double rolling_return,
                    double step_rate_hz) {
  return absl::StrCat("reward: ", Number(last_reward, 2),
                      "\nreturn: ", Number(rolling_return, 2),
                      "\nstep/sec: ", Number(step_rate_hz, 1));
}

}  // namespace tandem
