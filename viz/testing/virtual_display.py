"""A virtual X display, for windows that must not appear on the screen; the counterpart of virtual_display.h."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def virtual_display(width: int = 1400, height: int = 1000, *flags: str) -> Iterator[str]:
    """Runs an X server, Xvfb, on a free display number.

    Args:
      width: The screen's width in pixels.
      height: The screen's height in pixels.
      *flags: More flags of Xvfb.

    Yields:
      The value for DISPLAY.

    Raises:
      FileNotFoundError: Xvfb is not installed; tools/setup installs it.
      OSError: Xvfb did not start.
    """
    size = f"{width}x{height}x24"
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as ready:
        try:
            server = subprocess.Popen(
                ["Xvfb", "-displayfd", str(write_end), "-screen", "0", size, "-nolisten", "tcp", *flags],
                pass_fds=[write_end],
                stderr=subprocess.DEVNULL,
            )
        finally:
            os.close(write_end)
        try:
            number = ready.readline().strip()  # printed when it accepts clients; empty if it exits before
            if not number:
                raise OSError("expected that Xvfb starts, found that it does not; next: start Xvfb by hand")
            yield f":{number}"
        finally:
            server.terminate()
            server.wait()
