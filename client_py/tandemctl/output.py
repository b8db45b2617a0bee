"""What `tandemctl` writes: text to standard output, failures to standard error, tables and pages to a terminal."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence

STDOUT, STDERR = 1, 2
# What `tandemctl watch` blocks, and takes between two looks.
WATCH_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGWINCH)
CLEAR_REST_OF_LINE = "\x1b[K"


class Failed(Exception):
    """The command failed; the text says how. Ends `tandemctl` with exit code 1."""


def show(text: str | bytes) -> None:
    """Writes to standard output, at once.

    Args:
      text: It; a str may hold file names that are no UTF-8.

    Raises:
      BrokenPipeError: The output is a pipe without a reader, and SIGPIPE is ignored.
      Failed: The system refused, as when a disk is full.
    """
    left = memoryview(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    try:
        while left:
            left = left[os.write(STDOUT, left) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failed(f"expected to write to standard output, found: {error.strerror}") from error


def complain(text: str) -> None:
    """Writes a message to standard error.

    Args:
      text: It, without control characters besides line breaks.
    """
    with contextlib.suppress(OSError):
        os.write(STDERR, f"tandemctl: {text}\n".encode("utf-8", "backslashreplace"))


def check_standard_files() -> None:
    """Opens /dev/null in place of what is closed: else the next file or socket would be taken for it.

    Raises:
      Failed: Standard output is closed.
    """
    for stream, descriptor in ((sys.stdin, 0), (sys.stdout, STDOUT), (sys.stderr, STDERR)):
        if stream is None and descriptor == STDOUT:
            raise Failed("expected standard output to be open, found it closed\nNext: redirect it to /dev/null")
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def takes_escapes(descriptor: int) -> bool:
    """Tells whether a descriptor is a terminal that takes escape sequences.

    Args:
      descriptor: Of standard output or standard error.

    Returns:
      Whether it is a terminal and TERM is neither empty nor "dumb".
    """
    return os.environ.get("TERM", "") not in ("", "dumb") and os.isatty(descriptor)


def window_size() -> os.terminal_size:
    """Returns columns and rows of the terminal at standard output; 80 x 24 if it does not say."""
    try:
        size = os.get_terminal_size(STDOUT)
    except OSError:
        size = os.terminal_size((0, 0))
    return size if size.columns and size.lines else os.terminal_size((80, 24))


def rendered(*parts: object, width: int | None = None, crop: bool = False) -> list[str]:
    """Renders with rich.

    Args:
      parts: What rich can print.
      width: Columns; None: plain text, as wide as it has to be.
      crop: Whether to cut lines at `width`; else they go on beyond it.

    Returns:
      Lines, without spaces at their ends. For a terminal they have escape sequences for colours.
    """
    from rich.console import Console

    file = io.StringIO()
    console = Console(
        file=file,
        force_terminal=width is not None,
        color_system=None if width is None else "standard",
        width=width or 100_000,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        console.print(part, crop=crop, no_wrap=crop or None, overflow="crop" if crop else None)
    return [line.rstrip() for line in file.getvalue().removesuffix("\n").split("\n")]


class Screen:
    """The terminal's alternate screen, on which each page replaces the last."""

    _ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
    _TOP_LEFT, _CLEAR_BELOW = "\x1b[H", "\x1b[J"

    def __init__(self) -> None:
        """Does nothing before the first page."""
        self._entered = False

    def show(self, parts: Sequence[object], hidden: int = 0) -> None:
        """Shows a page, cut to the window.

        Args:
          parts: What rich can print.
          hidden: How many lines the page would have beyond these.

        Raises:
          BrokenPipeError: As `show`.
          Failed: As `show`.
        """
        columns, rows = window_size()
        # The last column stays empty: behind a character in it, CLEAR_REST_OF_LINE would clear that character.
        lines = rendered(*parts, width=columns - 1, crop=True)
        if len(lines) > rows:
            missing = len(lines) - rows + 1 + hidden
            lines[rows - 1 :] = [f"... {missing} more lines; a larger window shows them"[: columns - 1]]
        enter = "" if self._entered else self._ENTER
        self._entered = True
        page = f"{CLEAR_REST_OF_LINE}\r\n".join(lines)
        show(f"{enter}{self._TOP_LEFT}{page}{self._CLEAR_BELOW}")

    def leave(self) -> None:
        """Restores the terminal. Safe twice; the next `show` enters again."""
        if self._entered:
            self._entered = False
            with contextlib.suppress(OSError, Failed):
                show(self._LEAVE)
