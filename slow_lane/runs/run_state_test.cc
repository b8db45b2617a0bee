#include "slow_lane/runs/run_state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RUN_STATUS_FAULT;
using gymgui::trainer::RUN_STATUS_TERM;
using gymgui::trainer::RUN_STATUS_UNSPECIFIED;

struct PageRow {
  RunState state = RUN_STATUS_UNSPECIFIED;
  std::string name;         // "INITIALIZED"
  std::set<RunState> next;  // the states that may follow
};

RunState StateNamed(absl::string_view name) {  // "INIT"
  RunState state = RUN_STATUS_UNSPECIFIED;
  EXPECT_TRUE(gymgui::trainer::RunStatus_Parse(
      absl::StrCat("RUN_STATUS_", name), &state))
      << name;
  return state;
}

// The table of states in the documentation:
// | INIT, INITIALIZED | condition | HSHK, TERM, FAULT |
std::vector<PageRow> RowsOfThePage() {
  std::ifstream page("slow_lane/docs/slow_lane.md");
  std::vector<PageRow> rows;
  for (std::string line; std::getline(page, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    const std::vector<std::string> names =
        absl::StrSplit(absl::StripPrefix(cells[0], "| "), ", ");
    RunState state = RUN_STATUS_UNSPECIFIED;
    if (cells.size() != 3 || names.size() != 2 ||
        !gymgui::trainer::RunStatus_Parse(absl::StrCat("RUN_STATUS_", names[0]),
                                          &state)) {
      continue;
    }
    PageRow& row = rows.emplace_back(PageRow{state, names[1], {}});
    for (const absl::string_view next :
         absl::StrSplit(absl::StripSuffix(cells[2], "|"), absl::ByAnyChar(", "),
                        absl::SkipEmpty())) {
      row.next.insert(StateNamed(next));
    }
  }
  return rows;
}

TEST(MayFollow, HoldsForExactlyTheTransitionsOfThePage) {
  const std::vector<PageRow> rows = RowsOfThePage();
  ASSERT_EQ(rows.size(), 7u);
  for (const PageRow& row : rows) {
    EXPECT_EQ(NameOf(row.state), row.name);
    for (int number = -1; number <= 40; ++number) {
      const auto to = static_cast<RunState>(number);
      EXPECT_EQ(MayFollow(row.state, to), row.next.contains(to))
          << row.name << " to " << number;
    }
  }
}

TEST(MayFollow, IsFalseForNumbersThatAreNoState) {
  for (const int from : {-1, 0, 8, 40}) {
    for (int to = -1; to <= 40; ++to) {
      EXPECT_FALSE(
          MayFollow(static_cast<RunState>(from), static_cast<RunState>(to)))
          << from << " to " << to;
    }
  }
}

TEST(IsFinal, HoldsForTermAndFaultOnly) {
  for (int state = -1; state <= 40; ++state) {
    EXPECT_EQ(IsFinal(static_cast<RunState>(state)),
              state == RUN_STATUS_TERM || state == RUN_STATUS_FAULT);
  }
}

TEST(NameOf, NamesEachStateOnce) {
  std::set<absl::string_view> names;
  for (int state = 0; state <= 7; ++state) {
    names.insert(NameOf(static_cast<RunState>(state)));
  }
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(NameOf(static_cast<RunState>(99)), NameOf(RUN_STATUS_UNSPECIFIED));
}

}  // namespace
}  // namespace tandem::slow_lane
