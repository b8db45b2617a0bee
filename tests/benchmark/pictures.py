"""What the benchmark's pictures have in common: their colours, bars with whiskers, frames, and how they are saved."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tests.benchmark.tables import Spread

TANDEM, DARK_TANDEM, LIGHT_TANDEM, PALE_TANDEM = "#1b6ca8", "#0b3c5d", "#79b4dd", "#b7d5ec"
PEER, INK = "#b9bec4", "#444444"


@contextlib.contextmanager
def saved(path: str, title: str, rows: int, columns: int, width: float, height: float, **share: Any) -> Iterator[Any]:
    """Opens a picture, which is written when the block has ended.

    Args:
      path: The PNG to write.
      title: Its title.
      rows: Of panels.
      columns: Of panels.
      width: Inches.
      height: Inches.
      **share: `sharex` and `sharey`, as Matplotlib's `subplots` takes them.

    Yields:
      Rows of panels.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    canvas, panels = pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False, **share)
    try:
        yield panels
        for panel in panels.flat:
            panel.tick_params(labelsize=8)
            panel.spines[["top", "right"]].set_visible(False)
        canvas.suptitle(title, fontsize=11)
        canvas.tight_layout()
        canvas.savefig(path, dpi=140)
    finally:
        pyplot.close(canvas)


def draw_bars(
    panel: Any, places: Sequence[int], spreads: Sequence[Spread], ours: Sequence[bool], baseline: float
) -> None:
    """Draws medians as bars, downwards; whiskers reach from least to greatest.

    Args:
      panel: Where.
      places: Of the bars.
      spreads: What each shows.
      ours: Which of them are Tandem's.
      baseline: Where a dotted line goes.
    """
    medians = [one.median for one in spreads]
    whiskers = [[one.median - one.min for one in spreads], [one.max - one.median for one in spreads]]
    colours = [TANDEM if one else PEER for one in ours]
    panel.barh(places, medians, xerr=whiskers, color=colours, height=0.72, ecolor=INK, error_kw={"lw": 0.8})
    panel.axvline(baseline, color=INK, lw=0.8, ls=":")


def explain_bars(panel: Any) -> None:
    """Says beside the picture's title what the bars' colours mean."""
    from matplotlib.patches import Patch

    handles = [Patch(color=TANDEM, label="Tandem"), Patch(color=PEER, label="compared with")]
    panel.figure.legend(handles=handles, loc="upper right", fontsize=9, frameon=False)
