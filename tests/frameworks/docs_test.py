"""The examples of README and docs/ that need a framework run as printed."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent


def test_examples_run_as_printed() -> None:
    """Each runs in its own interpreter, with the wheel and the frameworks."""
    command = [sys.executable, "tests/docs/examples.py", "--with", "frameworks"]
    ran = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
