// The viewer's keys: one table for the keyboard, the help overlay and --help.
//
// Data flow: a key's name, as Qt writes it ("Ctrl+W") -> an Action.
//
//   if (std::optional<Action> action = ActionOf("Space")) Perform(*action);

#ifndef TANDEM_VIZ_CORE_KEY_MAP_H_
#define TANDEM_VIZ_CORE_KEY_MAP_H_

#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

enum class Action {
  kPause,
  kFit,
  kActualSize,
  kZoomIn,
  kZoomOut,
  kPanLeft,
  kPanRight,
  kPanUp,
  kPanDown,
  kGrid,
  kNextTile,
  kPreviousTile,
  kSnapshot,
  kWindowSnapshot,
  kHud,
  kPlots,
  kImageOnly,
  kTheme,
  kStartPage,
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
  absl::string_view keys;  // alternatives, with spaces between them
  absl::string_view does;
};

// In the order in which the help shows them; each action once.
std::span<const KeyRow> KeyTable();

// Ignores the case.
std::optional<Action> ActionOf(absl::string_view key);

// The table as text, `indent` spaces before each row.
std::string KeyHelpText(int indent);

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_KEY_MAP_H_
