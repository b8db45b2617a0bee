"""The examples of the READMEs and of the page on Gymnasium, run as they stand."""

import re
from pathlib import Path

import pytest

from tools.testing import pytest_main

_EXAMPLES = [
    (page, example)
    for page in ("README.md", "client_py/README.md", "docs/gymnasium.md")
    for example in re.findall(r"```python\n(.*?)```", Path(page).read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.mark.parametrize(("page", "example"), _EXAMPLES)
def test_example_runs(page: str, example: str) -> None:
    """What a new user pastes first has to work."""
    exec(compile(example, page, "exec"), {})


def test_there_are_examples() -> None:
    """In each page; else the test above tries nothing."""
    assert {page for page, _ in _EXAMPLES} == {"README.md", "client_py/README.md", "docs/gymnasium.md"}


if __name__ == "__main__":
    pytest_main.run(__file__)
