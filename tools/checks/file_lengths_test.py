"""Tests of the module file_lengths."""

from pathlib import Path

import pytest

from tools.checks.file_lengths import length_problem


@pytest.mark.parametrize(("name", "limit"), [("a.h", 300), ("a.cc", 500), ("a.py", 500)])
def test_refuses_a_file_at_its_limit(name: str, limit: int) -> None:
    """A file with one line fewer is accepted."""
    assert length_problem(Path(name), "\n" * (limit - 1)) is None
    assert f"found {limit} lines" in (length_problem(Path(name), "\n" * limit) or "")


def test_accepts_a_long_file_with_a_reason() -> None:
    """The reason must be at the top of the file."""
    assert length_problem(Path("a.h"), "// Length: one table.\n" + "\n" * 400) is None
    assert length_problem(Path("a.h"), "\n" * 400 + "// Length: one table.\n") is not None
