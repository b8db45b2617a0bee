"""Runs the examples in the package's docstrings against the shipped engine."""

import doctest
import importlib
from pathlib import Path

import pytest

import tandem
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures

_PACKAGE = Path(tandem.__file__).parent
_MODULES = [
    ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts)
    for path in sorted(_PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8") and not path.name.endswith("_test.py")
]


@pytest.mark.parametrize("module", _MODULES)
def test_examples_work_as_shown(module: str) -> None:
    """Each module with `>>>` has at least one example, and none fails."""
    results = doctest.testmod(importlib.import_module(module))
    assert results.failed == 0 and results.attempted > 0
