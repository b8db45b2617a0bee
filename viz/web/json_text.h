// JSON as the page needs it: valid UTF-8, and numbers that JSON can hold.
//
//   TextOfJson({{"return", NumberOrNull(run.rolling_return)}})

#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tandem {

// Bytes that are not UTF-8 become U+FFFD.
inline std::string TextOfJson(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// null for infinities and NaN.
inline nlohmann::json NumberOrNull(double number) {
  return std::isfinite(number) ? nlohmann::json(number)
                               : nlohmann::json(nullptr);
}

// Six digits: a plot shows no more, and the text is half as long. 0 for
// infinities and NaN.
inline double SixDigits(double number) {
  if (number == 0 || !std::isfinite(number)) return 0;
  const double power =
      std::pow(10.0, 5 - std::floor(std::log10(std::abs(number))));
  return std::isfinite(power) ? std::round(number * power) / power : number;
}

}  // namespace tandem
