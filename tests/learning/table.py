"""Formats figures as text."""

import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Formats the median, the least and the greatest value."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} .. {max(values):.{digits}f})"


def lay_out(lines: Sequence[Sequence[str]], words: int) -> str:
    """Formats a table in Markdown.

    Args:
      lines: The cells; the first line is the heading.
      words: The number of columns, from the left, that contain words; columns of numbers are right-aligned.

    Returns:
      The table.
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
