"""Checks that no header or source file grows too long to be read in one go.

A header has fewer than 300 lines, any other source file fewer than 500. A longer file says why in its top comment, in a
sentence that starts with `Length:`.
"""

import argparse
import re
import sys
from pathlib import Path

from tools.checks.source_files import source_files

_LIMITS = {".h": 300, ".c": 500, ".cc": 500, ".py": 500}
_REASON = re.compile(r"\W*Length: ")
_TOP_LINES = 60  # where the top comment ends at the latest


def length_problem(path: Path, text: str) -> str | None:
    """Returns what is wrong with a file's length; None: nothing. The path's ending tells the limit."""
    lines = text.splitlines()
    limit = _LIMITS[path.suffix]
    if len(lines) < limit or any(_REASON.match(line) for line in lines[:_TOP_LINES]):
        return None
    return f'{path}: expected fewer than {limit} lines, or "Length: <why>" in the top comment; found {len(lines)} lines'


def main() -> int:
    """Checks the tree, prints the problems, and returns the exit code: 0 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("."), help="top of the source tree")
    root = parser.parse_args().root
    files = source_files(root, tuple(_LIMITS))
    problems = [problem for path in files if (problem := length_problem(path, (root / path).read_text("utf-8")))]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
