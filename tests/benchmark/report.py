"""Tables and a picture of round trips."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.benchmark import pictures
from tests.benchmark.measurement import BASELINE, Group, Row, Size
from tests.benchmark.tables import Spread, figure, markdown

# Row key -> for each round a group, and a group of the baseline that was measured right before.
Turns = Mapping[str, Sequence[tuple[Group, Group]]]


@dataclass(frozen=True)
class Summary:
    """A row's figures over all rounds: microseconds, and ratios to the baseline's step right before."""

    step_p50_us: Spread
    step_p99_us: Spread
    cycle_p50_us: Spread
    client_cpu_us: Spread
    engine_cpu_us: Spread
    ratio: Spread


def summarise(turns: Turns) -> dict[str, Summary]:
    """Summarises one size.

    Args:
      turns: Of each row.

    Returns:
      A summary for each row.
    """

    def spread(key: str, field: str) -> Spread:
        return Spread.of([getattr(group, field) / 1e3 for group, _ in turns[key]])

    return {
        key: Summary(
            step_p50_us=spread(key, "step_p50"),
            step_p99_us=spread(key, "step_p99"),
            cycle_p50_us=spread(key, "cycle_p50"),
            client_cpu_us=spread(key, "client_cpu"),
            engine_cpu_us=spread(key, "engine_cpu"),
            ratio=Spread.of([group.step_p50 / baseline.step_p50 for group, baseline in turns[key]]),
        )
        for key in turns
    }


def table(size: Size, rows: Sequence[Row], summaries: Mapping[str, Summary], rounds: int) -> str:
    """Lays out one size as text, in Markdown.

    Args:
      size: The size.
      rows: The rows, in order.
      summaries: Their figures.
      rounds: How many groups each figure is over.

    Returns:
      Lines.
    """
    lines = []
    for row in rows:
        if row.key not in summaries:
            continue
        s = summaries[row.key]
        lines.append(
            (
                row.label,
                str(s.step_p50_us),
                figure(s.step_p99_us.median),
                figure(s.cycle_p50_us.median),
                f"{figure(s.client_cpu_us.median)} + {figure(s.engine_cpu_us.median)}",
                str(s.ratio),
            )
        )
    title = f"**{size}** (environments × obs × act): median (least .. greatest) of {rounds} groups"
    return markdown(
        title, ("row", "step p50 us", "p99", "with reading", "CPU us client + engine", "times bare spin"), lines
    )


def draw(path: str, rows: Sequence[Row], sizes: Sequence[Size], summaries: Sequence[Mapping[str, Summary]]) -> None:
    """Draws the medians as bars on a logarithmic scale; whiskers reach from least to greatest.

    Args:
      path: The PNG to write.
      rows: The rows, in order.
      sizes: The sizes, a panel each.
      summaries: The figures of each size.
    """
    title = "Step round trip, engine's work included (environments × obs × act)"
    width, height = 4.2 * len(sizes) + 2.6, 0.36 * len(rows) + 1.7
    with pictures.saved(path, title, 1, len(sizes), width, height, sharey=True) as ((*panels,),):
        for panel, size, found in zip(panels, sizes, summaries, strict=True):
            here = [(place, row) for place, row in enumerate(rows) if row.key in found]
            places, spreads = [place for place, _ in here], [found[row.key].step_p50_us for _, row in here]
            ours = [row.tandem for _, row in here]
            pictures.draw_bars(panel, places, spreads, ours, found[BASELINE].step_p50_us.median)
            panel.set_xscale("log")
            panel.set_xlim(10 ** math.floor(math.log10(min(s.min for s in spreads))), max(s.max for s in spreads) * 6)
            for place, spread in zip(places, spreads, strict=True):
                panel.text(spread.max * 1.15, place, figure(spread.median), va="center", fontsize=8)
            panel.set_title(str(size), fontsize=10)
            panel.set_xlabel("µs per step, p50", fontsize=9)
        panels[0].set_yticks(range(len(rows)), [row.label for row in rows], fontsize=9)
        panels[0].invert_yaxis()
        pictures.explain_bars(panels[0])
