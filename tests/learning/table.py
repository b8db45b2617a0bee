"""Figures as text."""

import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Says the median, the least and the greatest."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} .. {max(values):.{digits}f})"


def lay_out(lines: Sequence[Sequence[str]], words: int) -> str:
    """Lays out a table, in Markdown.

    Args:
      lines: Its cells; the first line is the heading.
      words: How many of the columns, from the left, are words; numbers stand to the right.

    Returns:
      Lines.
    """
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = ["-" * width if i < words else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join(
        "| "
        + " | ".join(
            text.ljust(width) if i < words else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in (lines[0], rule, *lines[1:])
    )
