"""Where the project's own source files are."""

from collections.abc import Iterator
from pathlib import Path

COMPONENTS = ("schema", "transport", "engine_adapter", "client_py", "viz", "slow_lane")
FOLDERS = (*COMPONENTS, "tests", "tools")


def source_files(root: Path, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yields source files below `root`, the top of the source tree, and relative to it, in the order of their paths.

    `suffixes` are such as ".cc". Of `folders`, those that don't exist are passed over.
    """
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path.relative_to(root)
