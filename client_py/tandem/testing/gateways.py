"""Helpers for tests of the gRPC gateway: its process, and a raw client."""

import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

GATEWAY = Path(__file__).parents[3] / "gateway/tandem-gateway"
DEADLINE_SECS = 60.0


def rpc_doors() -> dict[str, str]:
    """Returns what answers each RPC, by `Service/Name`: engine, step or gateway."""
    rows = subprocess.run([GATEWAY, "--list_rpcs"], capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(row.split("\t") for row in rows)


class Gateway:
    """A gateway with a port of its own.

    Attributes:
      address: Where it listens, for gRPC: HOST:PORT, or unix:PATH.
      host: The address without its port.
      port: The port; 0 if there is none.
      pid: Its process id.
    """

    def __init__(self, engine: str, *flags: str, pass_fds: Sequence[int] = ()) -> None:
        """Starts the gateway, and returns when it listens.

        Args:
          engine: The engine's name; the engine may start later.
          flags: Additional flags. Without --listen, it listens at 127.0.0.1.
          pass_fds: Descriptors that it inherits.

        Raises:
          RuntimeError: It printed no address.
        """
        command = [str(GATEWAY), f"--name={engine}", "--listen=127.0.0.1:0", *flags]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=pass_fds)
        self.pid = self._process.pid
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"' at (\S+)$", line)
        if not found:
            self._process.kill()
            raise RuntimeError(f"expected {GATEWAY} to print its address, found {line!r}; see stderr")
        self.address = found[1]
        host, _, port = self.address.rpartition(":")
        self.host: str = host
        self.port = int(port) if port.isdecimal() else 0

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal, and waits for the exit.

        Returns:
          The exit code; -9 if SIGKILL was necessary.
        """
        self._process.send_signal(number)
        try:
            code = self._process.wait(DEADLINE_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def __enter__(self) -> "Gateway":
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the gateway, if it runs; checks its exit code."""
        if self._process.poll() is None:
            assert self.stop() == 0
