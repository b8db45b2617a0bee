"""A display of one's own, for windows that must not appear on the screen; the twin of virtual_display.h."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def virtual_display(width: int = 1400, height: int = 1000) -> Iterator[str]:
    """Runs an X server, Xvfb, which picks a free display.

    Args:
      width: Of its screen, in pixels.
      height: The same.

    Yields:
      What DISPLAY has to be.

    Raises:
      FileNotFoundError: There is no Xvfb; tools/setup installs it.
      OSError: It did not start.
    """
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as ready:
        try:
            server = subprocess.Popen(
                ["Xvfb", "-displayfd", str(write_end), "-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp"],
                pass_fds=[write_end],
                stderr=subprocess.DEVNULL,
            )
        finally:
            os.close(write_end)
        try:
            number = ready.readline().strip()  # once it takes clients; nothing, if it ends before
            if not number:
                raise OSError("expected that Xvfb starts, found that it does not; next: start Xvfb by hand")
            yield f":{number}"
        finally:
            server.terminate()
            server.wait()
