#include "slow_lane/runs/run_state.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tandem::slow_lane {
namespace {

using enum gymgui::trainer::RunStatus;

constexpr uint32_t Set(RunState state) { return 1u << state; }
constexpr uint32_t kEnds = Set(RUN_STATUS_TERM) | Set(RUN_STATUS_FAULT);
// INIT: the next attempt.
constexpr uint32_t kEndsOrRestarts = kEnds | Set(RUN_STATUS_INIT);

struct Row {
  absl::string_view name;
  uint32_t next = 0;  // one bit for each state that may follow
};

// Indexed by the state's number in the protocol.
constexpr std::array<Row, 8> kTable = {{
    {"UNSPECIFIED", 0},
    {"INITIALIZED", Set(RUN_STATUS_HSHK) | kEnds},
    {"HANDSHAKE", Set(RUN_STATUS_RDY) | kEndsOrRestarts},
    {"READY", Set(RUN_STATUS_EXEC) | kEndsOrRestarts},
    {"EXECUTING", Set(RUN_STATUS_PAUSE) | kEndsOrRestarts},
    {"PAUSED", Set(RUN_STATUS_EXEC) | kEndsOrRestarts},
    {"FAULTED", 0},
    {"TERMINATED", 0},
}};
static_assert(RUN_STATUS_INIT == 1 && RUN_STATUS_HSHK == 2 &&
              RUN_STATUS_RDY == 3 && RUN_STATUS_EXEC == 4 &&
              RUN_STATUS_PAUSE == 5 && RUN_STATUS_FAULT == 6 &&
              RUN_STATUS_TERM == 7);

const Row& RowOf(RunState state) {
  const auto number = static_cast<size_t>(state);
  return kTable[number < kTable.size() ? number : 0];
}

}  // namespace

bool MayFollow(RunState from, RunState to) {
  const bool is_state = static_cast<size_t>(to) < kTable.size();
  return is_state && (RowOf(from).next & Set(to)) != 0;
}

bool IsFinal(RunState state) {
  return state == RUN_STATUS_TERM || state == RUN_STATUS_FAULT;
}

absl::string_view NameOf(RunState state) { return RowOf(state).name; }

}  // namespace tandem::slow_lane
