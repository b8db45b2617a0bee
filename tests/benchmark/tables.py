"""Figures as the benchmark's tables show them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Least, median and greatest of one figure over the rounds."""

    min: float
    median: float
    max: float

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        """Takes it from a figure for each round."""
        return Spread(min(values), statistics.median(values), max(values))

    def __str__(self) -> str:
        """Says it as the tables do: median (least .. greatest)."""
        return f"{figure(self.median)} ({figure(self.min)} .. {figure(self.max)})"


def figure(value: float) -> str:
    """Says a figure in three digits, where it has so many before the point in all of them."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def markdown(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lays out a table.

    Args:
      title: A line above it, in Markdown.
      head: The columns; the first names the row.
      lines: A text for each column; those that are missing stay empty.

    Returns:
      Its lines.
    """
    cells = [list(head), *([*line, *[""] * (len(head) - len(line))] for line in lines)]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(head))]
    rule = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
    texts = []
    for line in cells:
        padded = [line[0].ljust(widths[0]), *(text.rjust(w) for text, w in zip(line[1:], widths[1:], strict=True))]
        texts.append("| " + " | ".join(padded) + " |")
    return "\n".join([title, "", texts[0], "|" + "|".join(rule) + "|", *texts[1:]])
