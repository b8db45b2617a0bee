"""The examples of docs/ that need Ray run as printed."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_examples_run_as_printed() -> None:
    """Each runs in its own interpreter."""
    command = [sys.executable, "tests/docs/examples.py", "--with", "ray"]
    ran = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
