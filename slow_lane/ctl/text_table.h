// Texts for a terminal: columns side by side, numbers as people read them,
// and nothing that would steer the terminal.
//
//   TextTable table({"RUN", ">STEPS"});
//   table.Add({run_id, CountText(steps)});
//   std::cout << table.ToText();

#ifndef TANDEM_SLOW_LANE_CTL_TEXT_TABLE_H_
#define TANDEM_SLOW_LANE_CTL_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// "1,234,567".
std::string CountText(uint64_t count);
// The same of a rate: "0", "0.25", "12.5", "1,234".
std::string RateText(double per_second);
// "45 s", "12 min", "3 h 5 min", "2 d 4 h"; below a second "0 s".
std::string AgeText(double secs);
// "[#####-----]", of `width` characters between the brackets; `share` beyond 0
// to 1 counts as the nearer of them.
std::string BarText(double share, size_t width);

// What somebody else wrote, on one line: control characters as \xNN, and "..."
// for what is beyond `max_characters`.
std::string OneLine(absl::string_view text, size_t max_characters);

// Code points, as wide as a terminal shows most of them.
size_t CountCharacters(absl::string_view utf8);

class TextTable {
 public:
  // A title that begins with '>' stands, like its column, at the right.
  explicit TextTable(std::vector<std::string> titles);

  // As many cells as there are titles, each on one line already.
  void Add(std::vector<std::string> cells);

  // Columns two spaces apart, as wide as their widest cell; no spaces at the
  // ends of lines. A column whose cells are all empty is left out.
  std::string ToText() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the titles first
  std::vector<bool> right_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_TEXT_TABLE_H_
