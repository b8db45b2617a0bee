#include "slow_lane/ctl/csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tandem::slow_lane {

CsvRow& CsvRow::Raw(absl::string_view field) {
  absl::StrAppend(out_, first_ ? "" : ",", field);
  first_ = false;
  return *this;
}

CsvRow& CsvRow::Text(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return Raw(text);
  }
  return Raw(
      absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\""));
}

CsvRow& CsvRow::Count(uint64_t count) { return Raw(absl::StrCat(count)); }

CsvRow& CsvRow::Number(double number) {
  return Raw(absl::StrFormat("%.17g", number));
}

}  // namespace tandem::slow_lane
