"""`Daemon`: the daemon that a command line names, and what its errors mean to people."""

import contextlib
import math
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tandem.errors import InvalidArgument, TandemError, Unsupported
from tandem.printable import printable_lines
from tandem.telemetry import DaemonTimeout, DaemonUnreachable, TrainerClient
from tandem.telemetry.connection import Connection
from tandem.telemetry.feeds import MessageBlock, block_feed
from tandem.telemetry.subscription import Subscription
from tandem.telemetry.token_file import TOKEN_VARIABLE, read_token
from tandemctl.command_line import Options, WrongUsage
from tandemctl.output import Failed

_CALL_SECS = 10.0
# A daemon that is stopped must not delay Ctrl-C for long.
_LOOK_SECS = 2.0
_PATIENCE_SECS = 10.0
_PROBE_SECS = 1.0


class Daemon:
    """A client of the daemon.

    Attributes:
      client: The TrainerClient.
      address: HOST:PORT or unix:PATH.
    """

    def __init__(self, options: Options) -> None:
        """Connects when it is first used.

        Args:
          options: Of the command line.

        Raises:
          Failed: The token file cannot be used.
          ModuleNotFoundError: grpcio or protobuf is missing.
          WrongUsage: An address that cannot be.
        """
        self.address = options.daemon
        self._source = options.daemon_source
        self._timeout = _LOOK_SECS if options.command == "watch" or options.watch else _CALL_SECS
        self._token_file = options.token_file or os.environ.get(TOKEN_VARIABLE) or None
        try:
            read_token(self._token_file)
        except TandemError as error:
            name = "--token_file" if options.token_file else TOKEN_VARIABLE
            raise Failed(str(error).replace("token_file", name, 1)) from error
        try:
            self.client = TrainerClient(
                options.daemon,
                timeout=self._timeout,
                reconnect_secs=math.inf if options.follow else _PATIENCE_SECS,
                token_file=self._token_file,
            )
        except InvalidArgument as error:
            command = f"tandemctl {options.command} --help"
            raise WrongUsage(f"{str(error).replace('target', self._source, 1)}\nNext: {command}") from error

    def __enter__(self) -> Self:
        """Is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the client."""
        self.client.close()

    def blocks(self, run_id: str, stream: str) -> Subscription[MessageBlock]:
        """Reads the durable events of a run, many at a time; across a broken connection.

        Args:
          run_id: The run.
          stream: "steps", "episodes" or "lifecycle".

        Returns:
          An iterator over them.
        """
        connection = Connection(self.address, self._token_file)
        return Subscription(
            connection, [block_feed(run_id, stream)], 0, timeout=self._timeout, reconnect_secs=_PATIENCE_SECS
        )

    def explain(self, error: TandemError) -> str:
        """Says what an error of the client means.

        Args:
          error: It.

        Returns:
          Text for people: the daemon's own words where it answered, else what was expected and what to do next.
        """
        cause: Any = error.__cause__
        code = cause.code().name if hasattr(cause, "code") else ""
        details = printable_lines(cause.details() or code) if code else "no answer"
        where = f"{self.address} (by {self._source})"
        if isinstance(error, Unsupported):
            return f"expected a tandem-daemon of this version at {where}, found a server without this call: {details}"
        if isinstance(error, DaemonTimeout):
            return (
                f"expected an answer of the daemon at {where}, found no answer within {self._timeout:g} s; what was "
                "asked for may still be done\nNext: look whether that is a tandem-daemon, and not stopped"
            )
        if isinstance(error, DaemonUnreachable) and code != "CANCELLED":
            return self._unreachable(where, details)
        return details if code else str(error)

    def _unreachable(self, where: str, details: str) -> str:
        """Tells apart what gRPC has one code for: no daemon, one that is stopped, a socket that is closed to users."""
        try:
            _connect(self.address)
        except PermissionError as error:
            return (
                f"expected a daemon's socket that this user may open at {where}, found: {error.strerror}\n"
                "Next: run tandemctl as the daemon's user, or start the daemon with --allow_users and a --socket in a "
                "folder that both users can enter"
            )
        except OSError:
            return (
                f"expected a daemon at {where}, found none: {details}\n"
                "Next: start one, tandem-daemon --data_dir DIR; or say where it is, --daemon ADDRESS or TANDEM_DAEMON"
            )
        return (
            f"expected an answer of the daemon at {where}, found no answer though there is a connection: {details}\n"
            "Next: look whether that is a tandem-daemon, and not stopped"
        )


def _connect(address: str) -> None:
    """Connects and disconnects, without a word.

    Raises:
      OSError: There is no connection, or the address is of another form than HOST:PORT and unix:PATH.
    """
    kind, _, path = address.rpartition("unix:")
    if path and not kind and address.startswith("unix:"):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.settimeout(_PROBE_SECS)
            probe.connect(str(Path(path)))
        return
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise OSError(f"no HOST:PORT: {address}")
    socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECS).close()
