#include "slow_lane/proxy/json_fault.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {
namespace {

// Keeps nothing but where the parser stopped.
class FaultFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/,
                    const string_t& /*text*/) override {
    return true;
  }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return true; }
  bool key(string_t& /*name*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t bytes_read, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    fault_ = std::max(bytes_read, size_t{1}) - 1;
    return false;
  }

  // Of the first byte that cannot stand where it does.
  std::optional<size_t> fault() const { return fault_; }

 private:
  std::optional<size_t> fault_;
};

// Where a number that JSON lacks begins, if it is found out at its `at`.
size_t NumberBegin(absl::string_view line, size_t at) {
  return at > 0 && line[at - 1] == '-' && line[at] == 'I' ? at - 1 : at;
}

}  // namespace

std::string DescribeJsonFault(absl::string_view line,
                              simdjson::error_code error, size_t max_depth) {
  constexpr size_t kShown = 40;
  if (error == simdjson::DEPTH_ERROR) {
    return absl::StrCat("JSON: expected objects and arrays at most ", max_depth,
                        " deep, found more");
  }
  FaultFinder finder;
  nlohmann::json::sax_parse(line.begin(), line.end(), &finder);
  if (!finder.fault().has_value()) {
    // What nlohmann takes all the same, such as an integer beyond 64 bits.
    return absl::StrCat("JSON: ", simdjson::error_message(error));
  }
  const size_t at = *finder.fault();
  if (at >= line.size()) {
    return absl::StrCat("JSON: expected more, found the line's end at byte ",
                        line.size());
  }
  const size_t begin = NumberBegin(line, at);
  for (const absl::string_view number : {"NaN", "Infinity", "-Infinity"}) {
    if (absl::StartsWith(line.substr(begin), number)) {
      return absl::StrCat("JSON: expected a value at byte ", begin, ", found ",
                          number, ", which JSON lacks: print it as text, \"",
                          number, "\"");
    }
  }
  return absl::StrCat("JSON: cannot be read from byte ", at, " on, found ",
                      PrintableHead(line.substr(at), kShown));
}

}  // namespace tandem::slow_lane
