"""Engines and clients that end before they should. No time is judged."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.benchmark import bare_spin, engine_process
from tests.benchmark.engine_process import forked
from tools.testing import pytest_main


def test_a_dead_engine_is_named() -> None:
    """It has no CPU time to tell."""
    with forked(lambda: None) as engine:
        os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(RuntimeError, match=rf"expected 8 bytes .*pid {engine.pid}\), found 0.*Next: "):
            engine.cpu_nanos()


def test_a_question_that_an_engine_missed_is_asked_again() -> None:
    """As one that comes when Python is about to call what sleeps: it runs the handler after that."""

    def serve() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        os.write(here, b"!")
        signal.sigwait({signal.SIGUSR1})
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        while True:
            signal.pause()

    serving, here = os.pipe()
    with forked(serve) as engine:
        os.read(serving, 1)
        assert 0 < engine.cpu_nanos() <= engine.cpu_nanos()


def test_a_stopped_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for without end."""
    monkeypatch.setattr(engine_process, "_ANSWER_SECS", 0.1)
    with forked(signal.pause) as engine:
        os.kill(engine.pid, signal.SIGSTOP)
        with pytest.raises(RuntimeError, match=rf"pid {engine.pid}\) to tell its CPU time .*found no answer.*Next: "):
            engine.cpu_nanos()


def test_an_interrupt_ends_a_bare_spin_whose_engine_is_dead() -> None:
    """It would spin for seconds otherwise."""
    spin = bare_spin.BareSpin(1, 4, 1)
    step = bare_spin.stepper(spin)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(KeyboardInterrupt):
        step(np.zeros((1, 1), np.float32))


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
