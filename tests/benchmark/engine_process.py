"""The engine's process of a client in Python: round_trip in C++, or a fork in Python. It ends when its client does."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmark.worker import end_with_parent

ROUND_TRIP = Path(__file__).with_name("round_trip")
WAITS = ("spin", "adaptive", "block")  # Tandem's wait strategies


@dataclass(frozen=True)
class Size:
    """Sizes of a payload.

    Attributes:
      envs: Environments.
      obs: float32 values of an observation.
      act: float32 values of an action.
    """

    envs: int
    obs: int
    act: int

    def __str__(self) -> str:
        """Formats it for titles."""
        return f"{self.envs} × {self.obs} × {self.act}"

    def flags(self) -> list[str]:
        """Returns it as options of round_trip."""
        return [f"--envs={self.envs}", f"--obs={self.obs}", f"--act={self.act}"]


SMALL, MEDIUM, LARGE = Size(1, 4, 1), Size(64, 32, 8), Size(4096, 100, 12)


@contextlib.contextmanager
def serving(row: str, size: Size, region: str, *more: str, pass_fds: tuple[int, ...] = ()) -> Iterator[int]:
    """Runs the engine of a row in C++ in a process of its own, which has ended afterwards.

    Args:
      row: round_trip's --row.
      size: The payload.
      region: Name of the region or socket.
      *more: More options of round_trip.
      pass_fds: File descriptors that it inherits.

    Yields:
      Its process id.
    """
    command = [str(ROUND_TRIP), "--serve", f"--row={row}", *size.flags(), f"--region={region}", *more]
    engine = subprocess.Popen(command, pass_fds=pass_fds)
    try:
        yield engine.pid
    finally:
        engine.terminate()
        engine.wait()


@contextlib.contextmanager
def forked(serve: Callable[[], None]) -> Iterator[int]:
    """Runs an engine in Python in a fork of this process; it is killed afterwards.

    Args:
      serve: The engine's loop.

    Yields:
      Its process id.
    """
    client = os.getpid()

    def run() -> None:
        end_with_parent(signal.SIGKILL, client)
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            serve()

    engine = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    engine.start()
    try:
        assert engine.pid is not None
        yield engine.pid
    finally:
        engine.kill()
        engine.join()
