// CsvRow: one line of CSV, as RFC 4180 quotes it, but ended by a newline alone.
//
//   std::string csv;
//   CsvRow(&csv).Text("a, b").Number(0.5).Count(3).Flag(true).Finish();
//   csv;  // "a, b",0.5,3,true and a newline

#ifndef TANDEM_SLOW_LANE_CTL_CSV_H_
#define TANDEM_SLOW_LANE_CTL_CSV_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

class CsvRow {
 public:
  // Adds to what was written before: a text of several lines is one buffer.
  explicit CsvRow(std::string* out) : out_(out) {}

  // In quotes where a comma, a quote or the end of a line is in it.
  CsvRow& Text(absl::string_view text);
  CsvRow& Count(uint64_t count);
  // 17 digits at most, which give the same double again; "nan", "inf", "-inf".
  CsvRow& Number(double number);
  CsvRow& Flag(bool flag) { return Raw(flag ? "true" : "false"); }
  void Finish() { out_->push_back('\n'); }

 private:
  CsvRow& Raw(absl::string_view field);

  std::string* const out_;
  bool first_ = true;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_CSV_H_
