"""Tables and a picture of round trips."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.benchmark.measurement import BASELINE, Group, Row, Size
from tests.benchmark.tables import Spread, figure, markdown

Groups = Mapping[str, Sequence[Group]]  # row key -> a group for each round


@dataclass(frozen=True)
class Summary:
    """A row's figures over all rounds: microseconds, and ratios to the baseline's step of the same round."""

    step_p50_us: Spread
    step_p99_us: Spread
    cycle_p50_us: Spread
    client_cpu_us: Spread
    engine_cpu_us: Spread
    ratio: Spread


def summarise(groups: Groups) -> dict[str, Summary]:
    """Summarises one size.

    Args:
      groups: A group for each row and round; the baseline is among the rows.

    Returns:
      A summary for each row.
    """
    baseline = groups[BASELINE]

    def spread(key: str, field: str) -> Spread:
        return Spread.of([getattr(group, field) / 1e3 for group in groups[key]])

    return {
        key: Summary(
            step_p50_us=spread(key, "step_p50"),
            step_p99_us=spread(key, "step_p99"),
            cycle_p50_us=spread(key, "cycle_p50"),
            client_cpu_us=spread(key, "client_cpu"),
            engine_cpu_us=spread(key, "engine_cpu"),
            ratio=Spread.of([one.step_p50 / base.step_p50 for one, base in zip(groups[key], baseline, strict=True)]),
        )
        for key in groups
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
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    tandem_colour, peer_colour = "#1b6ca8", "#b9bec4"
    canvas, panels = pyplot.subplots(
        1, len(sizes), figsize=(4.2 * len(sizes) + 2.6, 0.36 * len(rows) + 1.7), sharey=True
    )
    panels = [panels] if len(sizes) == 1 else list(panels)
    for panel, size, found in zip(panels, sizes, summaries, strict=True):
        spreads = [found[row.key].step_p50_us for row in rows if row.key in found]
        places = [place for place, row in enumerate(rows) if row.key in found]
        medians = [s.median for s in spreads]
        whiskers = [[s.median - s.min for s in spreads], [s.max - s.median for s in spreads]]
        colours = [tandem_colour if row.tandem else peer_colour for row in rows if row.key in found]
        panel.barh(places, medians, xerr=whiskers, color=colours, height=0.72, ecolor="#444444", error_kw={"lw": 0.8})
        panel.set_xscale("log")
        panel.set_xlim(10 ** math.floor(math.log10(min(s.min for s in spreads))), max(s.max for s in spreads) * 6)
        for place, spread in zip(places, spreads, strict=True):
            panel.text(spread.max * 1.15, place, figure(spread.median), va="center", fontsize=8)
        panel.axvline(found[BASELINE].step_p50_us.median, color="#444444", lw=0.8, ls=":")
        panel.set_title(str(size), fontsize=10)
        panel.set_xlabel("µs per step, p50", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(rows)), [row.label for row in rows], fontsize=9)
    panels[0].invert_yaxis()
    canvas.suptitle("Step round trip, engine's work included (environments × obs × act)", fontsize=11)
    canvas.legend(
        handles=[Patch(color=tandem_colour, label="Tandem"), Patch(color=peer_colour, label="compared with")],
        loc="upper right",
        fontsize=9,
        frameon=False,
    )
    canvas.tight_layout()
    canvas.savefig(path, dpi=140)
    pyplot.close(canvas)
