#include "slow_lane/ctl/text_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "program/clipped_lines.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {
namespace {

constexpr uint64_t kMinute = 60;
constexpr uint64_t kHour = 60 * kMinute;
constexpr uint64_t kDay = 24 * kHour;

}  // namespace

std::string CountText(uint64_t count) {
  std::string text = absl::StrCat(count);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string RateText(double per_second) {
  if (!(per_second > 0)) return "0";
  if (per_second < 9.995) return absl::StrFormat("%.2f", per_second);
  if (per_second < 99.95) return absl::StrFormat("%.1f", per_second);
  return per_second < 1e18
             ? CountText(static_cast<uint64_t>(std::round(per_second)))
             : absl::StrFormat("%.3g", per_second);
}

std::string AgeText(double secs) {
  const uint64_t whole =
      secs > 0 && secs < 1e18 ? static_cast<uint64_t>(secs) : 0;
  if (whole < kMinute) return absl::StrCat(whole, " s");
  if (whole < kHour) return absl::StrCat(whole / kMinute, " min");
  if (whole < kDay) {
    return absl::StrCat(whole / kHour, " h ", whole % kHour / kMinute, " min");
  }
  return absl::StrCat(whole / kDay, " d ", whole % kDay / kHour, " h");
}

std::string BarText(double share, size_t width) {
  const double kept = share > 0 ? std::min(share, 1.0) : 0;
  // Full only when it is.
  const size_t full = static_cast<size_t>(kept * static_cast<double>(width));
  return absl::StrCat("[", std::string(full, '#'),
                      std::string(width - full, '-'), "]");
}

std::string OneLine(absl::string_view text, size_t max_characters) {
  return ClippedLine(PrintableHead(text, std::numeric_limits<size_t>::max()),
                     max_characters);
}

size_t CountCharacters(absl::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(),
                    [](char byte) { return (byte & 0xC0) != 0x80; }));
}

TextTable::TextTable(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    absl::string_view name = title;
    right_.push_back(absl::ConsumePrefix(&name, ">"));
    title = std::string(name);
  }
  rows_.push_back(std::move(titles));
}

void TextTable::Add(std::vector<std::string> cells) {
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToText() const {
  std::vector<size_t> widths(right_.size(), 0);
  for (size_t i = 1; i < rows_.size(); ++i) {
    for (size_t column = 0; column < widths.size(); ++column) {
      widths[column] =
          std::max(widths[column], CountCharacters(rows_[i][column]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t column = 0; column < widths.size(); ++column) {
      if (widths[column] == 0) continue;
      const size_t width =
          std::max(widths[column], CountCharacters(rows_.front()[column]));
      const std::string gap(width - CountCharacters(row[column]), ' ');
      if (!line.empty()) line += "  ";
      line += right_[column] ? gap + row[column] : row[column] + gap;
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

}  // namespace tandem::slow_lane
