// JSON as the page needs it: valid UTF-8, and numbers that JSON can hold.
//
//   TextOfJson({{"return", NumberOrNull(run.rolling_return)}})

#ifndef TANDEM_VIZ_WEB_JSON_TEXT_H_
#define TANDEM_VIZ_WEB_JSON_TEXT_H_

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

}  // namespace tandem

#endif  // TANDEM_VIZ_WEB_JSON_TEXT_H_
