"""Where the project's own source files are."""

from collections.abc import Iterator
from pathlib import Path

NO_COMPONENTS = ("docs", "tests", "tools")


def source_files(root: Path, suffixes: tuple[str, ...], passed_over: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yields source files below `root`, the top of the source tree, and relative to it, in the order of their paths.

    `suffixes` are such as ".cc". Hidden folders, links to folders and those `passed_over` are not read.
    """
    for folder in sorted(root.iterdir()):
        if folder.name.startswith(".") or folder.name in passed_over or folder.is_symlink() or not folder.is_dir():
            continue
        yield from files_below(root, folder.name, suffixes)


def files_below(root: Path, folder: str, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yields those of one folder."""
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in suffixes and path.is_file():
            yield path.relative_to(root)
