#include "viz/core/key_map.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace tandem {
namespace {

constexpr KeyRow kKeys[] = {
    {Action::kPause, "Space",
     "pause the image, and back to live; the run goes on"},
    {Action::kNextTile, "]", "next tile of the grid (also a click on one)"},
    {Action::kPreviousTile, "[", "previous tile"},
    {Action::kGrid, "G Esc", "the complete grid again; closes this help"},
    {Action::kSnapshot, "S",
     "save the image as a PNG file, as it was published"},
    {Action::kWindowSnapshot, "Shift+S", "save the window as a PNG file"},
    {Action::kHud, "H", "numbers on the image: show, hide"},
    {Action::kEngine, "E", "the engine's panel: show, hide"},
    {Action::kImageOnly, "B", "the bare image: nothing around it"},
    {Action::kTheme, "T", "dark or light"},
    {Action::kStartPage, "Home Ctrl+T", "the list of runs"},
    {Action::kSlowLane, "L", "the daemon's runs in place of the list"},
    {Action::kPage, "P",
     "opens the run's page in a browser: plots, jobs, recordings"},
    {Action::kPreviousRun, "Up", "choose the run above"},
    {Action::kNextRun, "Down", "choose the run below"},
    {Action::kOpen, "Return Enter", "open the chosen run"},
    {Action::kNextTab, "PgDown Ctrl+Tab", "next tab"},
    {Action::kPreviousTab, "PgUp Ctrl+Shift+Tab Ctrl+Shift+Backtab",
     "previous tab"},
    {Action::kCloseTab, "Ctrl+W", "close the tab; the run goes on"},
    {Action::kFullScreen, "F11", "full screen, and back"},
    {Action::kHelp, "? F1", "this help"},
    {Action::kQuit, "Ctrl+Q", "leave"},
};

}  // namespace

std::span<const KeyRow> KeyTable() { return kKeys; }

std::optional<Action> ActionOf(absl::string_view key) {
  for (const KeyRow& row : kKeys) {
    for (const absl::string_view one : absl::StrSplit(row.keys, ' ')) {
      if (absl::EqualsIgnoreCase(one, key)) return row.action;
    }
  }
  return std::nullopt;
}

std::string KeyHelpText(int indent) {
  std::string text;
  for (const KeyRow& row : kKeys) {
    const absl::string_view first = *absl::StrSplit(row.keys, ' ').begin();
    absl::StrAppendFormat(&text, "%*s%-8s  %s\n", indent, "", first, row.does);
  }
  return text;
}

}  // namespace tandem
