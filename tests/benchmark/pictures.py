"""Draws an image of a suite: a panel for each case, and a bar for each row's first figure."""

from collections.abc import Sequence

import matplotlib
import numpy as np

from tests.benchmark.harness import THIS, Found
from tests.benchmark.tables import figure

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402, after the choice of its output

_TANDEM, _PEER, _INK = "#1b6ca8", "#b9bec4", "#444444"


def draw(path: str, about: str, found: Sequence[Found]) -> None:
    """Draws medians as bars on a logarithmic scale, with whiskers from least to greatest; Tandem's bars are blue.

    Args:
      path: The PNG file to write.
      about: The image's title.
      found: The measurements of one or more cases.
    """
    heights = [0.34 * len(one.rows) + 0.9 for one in found]
    size = (9.5, sum(heights) + 0.5)
    canvas, panels = pyplot.subplots(
        len(found), 1, figsize=size, squeeze=False, height_ratios=heights, layout="constrained"
    )
    try:
        for one, panel in zip(found, panels[:, 0], strict=True):
            column = one.case.ratios[0] if one.case.ratios else one.columns()[0]
            rounds = [one.builds[THIS][row.key][column] for row in one.rows]
            places = range(len(one.rows))
            medians = [float(np.median(values)) for values in rounds]
            whiskers = [[m - min(v) for m, v in zip(medians, rounds, strict=True)]]
            whiskers.append([max(v) - m for m, v in zip(medians, rounds, strict=True)])
            colours = [_TANDEM if row.is_tandem else _PEER for row in one.rows]
            panel.barh(places, medians, xerr=whiskers, color=colours, ecolor=_INK, error_kw={"lw": 0.8})
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter("{x:g}")
            panel.xaxis.set_minor_formatter("")
            panel.set_xlim(min(map(min, rounds)) / 2, max(map(max, rounds)) * 3)
            for place, values, median in zip(places, rounds, medians, strict=True):
                panel.text(max(values) * 1.1, place, figure(median), va="center", fontsize=8)
            panel.set_yticks(places, [row.label for row in one.rows], fontsize=8)
            panel.invert_yaxis()
            panel.set_title(f"{one.case.title}: {column}", fontsize=9)
            panel.tick_params(labelsize=8)
            panel.spines[["top", "right"]].set_visible(False)
        canvas.suptitle(about, fontsize=10)
        canvas.savefig(path, dpi=120)
    finally:
        pyplot.close(canvas)
