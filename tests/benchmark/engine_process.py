"""The engine process of a client in Python: round_trip in C++, or a fork in Python; it ends when its client ends."""

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
    """The sizes of a payload.

    Attributes:
      envs: The number of environments.
      obs: The number of float32 values in an observation.
      act: The number of float32 values in an action.
    """

    envs: int
    obs: int
    act: int

    def __str__(self) -> str:
        """Formats the sizes for titles."""
        return f"{self.envs} × {self.obs} × {self.act}"

    def flags(self) -> list[str]:
        """Returns the sizes as flags of round_trip."""
        return [f"--envs={self.envs}", f"--obs={self.obs}", f"--act={self.act}"]


SMALL, MEDIUM, LARGE = Size(1, 4, 1), Size(64, 32, 8), Size(4096, 100, 12)


@contextlib.contextmanager
def serving(row: str, size: Size, region: str, *more: str, pass_fds: tuple[int, ...] = ()) -> Iterator[int]:
    """Runs the C++ engine of a row in a new process, and ends it afterwards.

    Args:
      row: round_trip's --row.
      size: The payload's size.
      region: The name of the region or socket.
      *more: More flags of round_trip.
      pass_fds: File descriptors that the process inherits.

    Yields:
      The engine's process id.
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
    """Runs an engine in Python in a fork of this process, and kills it afterwards.

    Args:
      serve: The engine's loop.

    Yields:
      The engine's process id.
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


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Runs processes that compute without a pause."""

    def compute() -> None:
        while True:
            pass

    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(forked(compute))
        yield
