#include "slow_lane/runs/run_state.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RUN_STATUS_EXEC;
using gymgui::trainer::RUN_STATUS_FAULT;
using gymgui::trainer::RUN_STATUS_HSHK;
using gymgui::trainer::RUN_STATUS_INIT;
using gymgui::trainer::RUN_STATUS_PAUSE;
using gymgui::trainer::RUN_STATUS_RDY;
using gymgui::trainer::RUN_STATUS_TERM;
using gymgui::trainer::RUN_STATUS_UNSPECIFIED;

const std::set<std::pair<int, int>> kLegal = {
    {RUN_STATUS_INIT, RUN_STATUS_HSHK},   {RUN_STATUS_INIT, RUN_STATUS_TERM},
    {RUN_STATUS_INIT, RUN_STATUS_FAULT},  {RUN_STATUS_HSHK, RUN_STATUS_RDY},
    {RUN_STATUS_HSHK, RUN_STATUS_TERM},   {RUN_STATUS_HSHK, RUN_STATUS_FAULT},
    {RUN_STATUS_RDY, RUN_STATUS_EXEC},    {RUN_STATUS_RDY, RUN_STATUS_TERM},
    {RUN_STATUS_RDY, RUN_STATUS_FAULT},   {RUN_STATUS_EXEC, RUN_STATUS_PAUSE},
    {RUN_STATUS_EXEC, RUN_STATUS_TERM},   {RUN_STATUS_EXEC, RUN_STATUS_FAULT},
    {RUN_STATUS_PAUSE, RUN_STATUS_EXEC},  {RUN_STATUS_PAUSE, RUN_STATUS_TERM},
    {RUN_STATUS_PAUSE, RUN_STATUS_FAULT},
};

TEST(CheckTransition, AllowsOrRefusesEveryPair) {
  size_t allowed = 0;
  for (int from = -1; from <= 40; ++from) {
    for (int to = -1; to <= 40; ++to) {
      const absl::Status status = CheckTransition(static_cast<RunState>(from),
                                                  static_cast<RunState>(to));
      if (kLegal.contains({from, to})) {
        EXPECT_TRUE(status.ok()) << status;
        ++allowed;
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
            << from << " to " << to;
      }
    }
  }
  EXPECT_EQ(allowed, kLegal.size());
}

TEST(CheckTransition, SaysWhatMayFollow) {
  const absl::Status status =
      CheckTransition(RUN_STATUS_INIT, RUN_STATUS_PAUSE);
  for (const char* fact : {"INITIALIZED", "HANDSHAKE", "PAUSED"}) {
    EXPECT_NE(status.message().find(fact), absl::string_view::npos) << status;
  }
}

TEST(IsFinal, HoldsForTheTwoEndsOnly) {
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
