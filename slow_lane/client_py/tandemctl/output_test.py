"""Output of tandemctl to terminals, dumb terminals and pipes."""

import os
import sys

import pytest

from tandem.testing.terminals import ENTER, LEAVE, on_a_terminal


def _on_a_terminal(program: str, kind: str) -> tuple[str, int]:
    """Runs a Python program on a terminal of 3 rows and 6 columns; returns its output and exit code."""
    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    environment = os.environ | {"TERM": kind, "PYTHONPATH": path}
    words = (sys.executable, "-c", program)
    with on_a_terminal(words, environment=environment, rows=3, columns=6) as terminal:
        return terminal.read(), terminal.process.wait()


_SHOW = """
from rich.text import Text
from tandemctl.output import Screen
screen = Screen()
screen.show([Text({0!r})])
screen.show([Text({1!r})], hidden=2)
screen.leave()
screen.leave()
"""


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("one", "two", "\x1b[Hone\x1b[J\x1b[Htwo\x1b[J"),
        # The terminal prints "\r" before each "\n". The last column stays empty.
        ("12345\n123456", "1", "\x1b[H12345\x1b[K\r\r\n12345\x1b[J\x1b[H1\x1b[J"),
        ("1", "1\n2\n3\n4", "\x1b[H1\x1b[J\x1b[H1\x1b[K\r\r\n2\x1b[K\r\r\n... 4\x1b[J"),
    ],
)
def test_each_page_replaces_the_last_and_is_cut_to_the_window(first: str, second: str, shown: str) -> None:
    """The last line shows that lines are hidden."""
    assert _on_a_terminal(_SHOW.format(first, second), "xterm") == (ENTER + shown + LEAVE, 0)


@pytest.mark.parametrize(("kind", "takes"), [("xterm", True), ("dumb", False), ("", False)])
def test_a_dumb_terminal_gets_no_escapes(kind: str, takes: bool) -> None:
    """A terminal without TERM, and a pipe, get none either."""
    program = "from tandemctl.output import takes_escapes; print(takes_escapes(1), takes_escapes(os.pipe()[1]))"
    assert _on_a_terminal(f"import os; {program}", kind) == (f"{takes} False\r\n", 0)


_WATCH = """
import os, signal, sys
from tandemctl.output import WATCH_SIGNALS
signal.pthread_sigmask(signal.SIG_BLOCK, WATCH_SIGNALS)
os.kill(os.getpid(), signal.SIGINT)  # it waits until the first page is shown
from tandemctl.command_line import parse
from tandemctl.daemon import Daemon
from tandemctl.watch import watch
daemon = Daemon(parse(["watch", "run", "--daemon", "unix:/nonesuch/daemon.sock"], ""))
sys.exit(watch(daemon, "run", submitted=True))
"""


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_watch_after_submit_waits_for_the_daemon(kind: str) -> None:
    """The page shows that it waits."""
    shown, code = _on_a_terminal(_WATCH, kind)
    assert code == 0, shown
    assert ("waiti" if kind == "xterm" else "waiting for the daemon at unix:/nonesuch") in shown


def test_watch_fails_without_a_daemon() -> None:
    """The error has the next action; the alternate screen was not entered."""
    program = (
        "import sys\nfrom tandemctl.main import main\nsys.argv[1:] = ['watch', '--daemon=unix:/nonesuch/d']\nmain()"
    )
    shown, code = _on_a_terminal(program, "xterm")
    assert code == 1 and "Next: start one" in shown and ENTER not in shown
