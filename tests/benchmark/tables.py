"""Formats figures for the benchmark's tables."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table


def figure(value: float) -> str:
    """Formats a figure with three digits, or with all digits before the decimal point."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def spread(values: Sequence[float], middle: float | None = None) -> str:
    """Formats the figures of the rounds: the median or another middle, the least and the greatest."""
    middle = float(np.median(values)) if middle is None else middle
    return figure(middle) if len(values) == 1 else f"{figure(middle)} ({figure(min(values))} .. {figure(max(values))})"


def interval(ratios: NDArray[np.float64]) -> tuple[float, float, float]:
    """Computes the median and its 95 % interval by bootstrap over the rounds."""
    drawn = np.random.default_rng(0).choice(ratios, (10_000, ratios.size))
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
    return float(np.median(ratios)), float(low), float(high)


def markdown(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Formats a table.

    Args:
      title: A line above the table, in Markdown.
      head: The columns' names; the first column has the rows' names.
      lines: A text for each column of each row.

    Returns:
      The table in Markdown.
    """
    table = Table(*head, box=box.MARKDOWN)
    for column in table.columns[1:]:
        column.justify = "right"
    for line in lines:
        table.add_row(*line)
    console = Console(width=1000, markup=False, emoji=False, highlight=False, color_system=None)
    with console.capture() as printed:
        console.print(table)
    return f"**{title}**\n\n{printed.get().strip()}"
