"""The README's example, run as it stands."""

import re
from pathlib import Path

import pytest

from tools.testing import pytest_main

(EXAMPLE,) = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_example_runs_and_prints_its_statistics(capfd: pytest.CaptureFixture[str]) -> None:
    """What a new user pastes first has to work."""
    exec(compile(EXAMPLE, "README.md", "exec"), {})
    printed = capfd.readouterr().out
    assert "ClientStats(exchanges=1001" in printed


if __name__ == "__main__":
    pytest_main.run(__file__)
