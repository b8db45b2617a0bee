"""What `tandemctl` writes: text to standard output, failures to standard error, pages to a terminal."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterable, Sequence

STDOUT, STDERR = 1, 2
# What `tandemctl watch` blocks, and takes between two updates.
WATCH_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGWINCH)


class Failed(Exception):
    """The command failed; the text says how. Ends `tandemctl` with exit code 1."""


def show(text: str | bytes) -> None:
    """Writes to standard output, at once. BrokenPipeError: it has no reader, and SIGPIPE is ignored."""
    left = memoryview(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    try:
        while left:
            left = left[os.write(STDOUT, left) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failed(f"expected to write to standard output, found: {error.strerror}") from error


def show_lines(lines: Iterable[str]) -> None:
    """Writes lines to standard output, as `show`."""
    show("".join(f"{line}\n" for line in lines))


def complain(text: str) -> None:
    """Writes a message to standard error, as far as that takes it."""
    with contextlib.suppress(OSError):
        os.write(STDERR, f"tandemctl: {text}\n".encode("utf-8", "backslashreplace"))


def check_standard_files() -> None:
    """Opens /dev/null in place of what is closed, else the next file or socket would be taken for it."""
    for stream, descriptor in ((sys.stdin, 0), (sys.stdout, STDOUT), (sys.stderr, STDERR)):
        if stream is None and descriptor == STDOUT:
            raise Failed("expected standard output to be open, found it closed\nNext: redirect it to /dev/null")
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def takes_escapes(descriptor: int) -> bool:
    """Returns whether a descriptor is a terminal, and TERM neither empty nor "dumb"."""
    return os.environ.get("TERM", "") not in ("", "dumb") and os.isatty(descriptor)


def window_size() -> os.terminal_size:
    """Returns columns and rows of the terminal at standard output; 80 x 24 if it does not say."""
    with contextlib.suppress(OSError):
        size = os.get_terminal_size(STDOUT)
        if size.columns and size.lines:
            return size
    return os.terminal_size((80, 24))


def rendered(*parts: object, width: int | None = None, crop: bool = False) -> list[str]:
    """Renders what rich can print as lines, without spaces at their ends.

    `width` is the columns of a terminal, which takes colours; None: plain text, as wide as it has to be. `crop`:
    whether to cut lines at `width`; else they continue beyond it.
    """
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        force_terminal=width is not None,
        color_system="standard" if width else None,
        width=width or 100_000,
    )
    for part in parts:
        console.print(part, crop=crop, no_wrap=crop or None, overflow="crop" if crop else None)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().removesuffix("\n").split("\n")]


class Screen:
    """The terminal's alternate screen, on which each page replaces the last."""

    def __init__(self) -> None:
        """Does nothing before the first page."""
        self._entered = False

    def show(self, parts: Sequence[object], hidden: int = 0) -> None:
        """Shows a page of what rich can print, cut to the window; `hidden` lines of it are not among the parts."""
        columns, rows = window_size()
        # The last column stays empty: "clear the rest of the line" behind it would clear its character.
        lines = rendered(*parts, width=max(columns - 1, 1), crop=True)
        if len(lines) > rows:
            missing = len(lines) - rows + 1 + hidden
            lines[rows - 1 :] = [f"... {missing} more lines; a larger window shows them"[: columns - 1]]
        enter = "" if self._entered else "\x1b[?1049h\x1b[?25l"
        self._entered = True
        page = "\x1b[K\r\n".join(lines)
        show(f"{enter}\x1b[H{page}\x1b[J")

    def leave(self) -> None:
        """Restores the terminal. A second call has no effect; the next `show` enters again."""
        if self._entered:
            self._entered = False
            with contextlib.suppress(OSError, Failed):
                show("\x1b[?25h\x1b[?1049l")
