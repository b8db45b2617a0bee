"""Programs on a pseudo-terminal of their own."""

import contextlib
import os
import select
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the alternate screen without a cursor, and back
_TIMEOUT_SECS = 120
_POLL_SECS = 0.05


class Terminal:
    """A terminal with a program on it; `on_a_terminal` makes it.

    Attributes:
      process: The program.
      programs_side: A descriptor of the side that the program has.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int, programs_side: int) -> None:
        """Takes what `on_a_terminal` has opened."""
        self.process = process
        self.programs_side = programs_side
        self._terminal = terminal

    def type(self, keys: bytes) -> None:
        """Types keys, such as byte 3 for Ctrl-C."""
        os.write(self._terminal, keys)

    def read(self, enough: Callable[[str], bool] = lambda _: False) -> str:
        """Returns the new output up to where it satisfies a condition, or up to the program's end.

        Raises:
          AssertionError: Neither came in 120 s.
        """
        deadline = time.monotonic() + _TIMEOUT_SECS
        output = b""
        while not enough(text := output.decode(errors="ignore")):
            ended = self.process.poll() is not None  # before the look for output, which is then the rest
            if select.select([self._terminal], [], [], 0 if ended else _POLL_SECS)[0]:
                output += os.read(self._terminal, 1 << 16)
            elif ended:
                return text
            assert time.monotonic() < deadline, text
        return text


@contextlib.contextmanager
def on_a_terminal(
    words: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    folder: Path | None = None,
    rows: int = 24,
    columns: int = 80,
) -> Iterator[Terminal]:
    """Starts a program on a new terminal, and kills it at the end of the block.

    The program's side stays open here too. Else a read fails with EIO once the program's end has closed that side, and
    on a busy machine it does so before it has returned all of the output.

    Args:
      words: The program and its arguments.
      environment: Its environment.
      folder: Its working directory; None: the caller's.
      rows: Height of the terminal's window.
      columns: Width of the terminal's window.

    Yields:
      The terminal.
    """
    terminal, programs_side = os.openpty()
    termios.tcsetwinsize(programs_side, (rows, columns))
    with contextlib.ExitStack() as stack:
        for descriptor in (terminal, programs_side):
            stack.callback(os.close, descriptor)
        process = subprocess.Popen(words, cwd=folder, env=environment, preexec_fn=lambda: os.login_tty(programs_side))
        stack.callback(process.wait)
        stack.callback(process.kill)
        yield Terminal(process, terminal, programs_side)
