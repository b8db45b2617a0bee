"""Engines and clients that end before they should. No time is judged."""

import os
import signal
import subprocess
import sys

import pytest

from tests.benchmark.engine_process import forked
from tools.testing import pytest_main


def test_a_dead_engine_is_named() -> None:
    """It has no CPU time to tell."""
    with forked(lambda: None) as engine:
        os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(RuntimeError, match=rf"expected 8 bytes .*pid {engine.pid}\), found 0.*Next: "):
            engine.cpu_nanos()


@pytest.mark.parametrize(("parent", "code"), [("os.getppid()", 0), ("os.getpid()", -signal.SIGKILL)])
def test_who_comes_after_its_parent_ended_ends_at_once(parent: str, code: int) -> None:
    """As one whose parent is another process than it should be."""
    program = (
        "import os, signal\n"
        "from tests.benchmark.engine_process import end_with_parent\n"
        f"end_with_parent(signal.SIGKILL, {parent})\n"
    )
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=variables).returncode == code


if __name__ == "__main__":
    pytest_main.run(__file__)
