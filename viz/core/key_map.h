// The viewer's keys: one table for the keyboard, the help overlay and --help.
//
// Data flow: Qt's name of a key ("Ctrl+W") -> an Action.

#pragma once

#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

enum class Action {
  kPause,
  kGrid,
  kNextTile,
  kPreviousTile,
  kSnapshot,
  kWindowSnapshot,
  kHud,
  kEngine,
  kImageOnly,
  kTheme,
  kStartPage,
  kSlowLane,
  kPage,
  kPreviousRun,
  kNextRun,
  kOpen,
  kNextTab,
  kPreviousTab,
  kCloseTab,
  kFullScreen,
  kHelp,
  kQuit,
};

struct KeyRow {
  Action action;
  absl::string_view keys;  // alternatives, separated by spaces
  absl::string_view does;
};

// Returns each action once, in the order of the help.
std::span<const KeyRow> KeyTable();

// Ignores the case.
std::optional<Action> ActionOf(absl::string_view key);

// Returns the table as text, with `indent` spaces before each row.
std::string KeyHelpText(int indent);

}  // namespace tandem
