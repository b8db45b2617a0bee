"""`Daemon`: the daemon that a command line names, and its errors as texts for people."""

import argparse
import contextlib
import math
import os
import socket
from typing import Any

from tandem.errors import InvalidArgument, TandemError, Unsupported
from tandem.printable import printable_lines
from tandem.telemetry import DaemonTimeout, DaemonUnreachable, TlsFiles, TrainerClient
from tandem.telemetry.token_file import TOKEN_VARIABLE, read_token
from tandemctl.command_line import WrongUsage
from tandemctl.output import Failed

_CALL_SECS = 10.0
_WATCH_SECS = 2.0  # a daemon that is stopped must not delay Ctrl-C for long
_RECONNECT_SECS = 10.0
_PROBE_SECS = 1.0
_START = "Next: start one, tandem-daemon --data_dir DIR; or say where it is, --daemon ADDRESS or TANDEM_DAEMON"
_CHECK = "Next: look whether that is a tandem-daemon, and not stopped, and whether both of you use TLS (--tls_cert)"
_ALLOW = (
    "Next: run tandemctl as the daemon's user, or start the daemon with --allow_users and a --socket in a folder that "
    "both users can enter"
)


class Daemon:
    """A TrainerClient, `client`, of the daemon at `address`."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Connects when it is first used. Failed: an unusable token or PEM file; WrongUsage: an invalid address."""
        self.address: str = options.daemon
        self._where = f"{options.daemon} (by {options.daemon_source})"
        self._timeout = _WATCH_SECS if options.command == "watch" or getattr(options, "watch", False) else _CALL_SECS
        token_file = options.token_file or os.environ.get(TOKEN_VARIABLE) or None
        reconnect_secs = math.inf if getattr(options, "follow", False) else _RECONNECT_SECS
        try:
            read_token(token_file, "--token_file" if options.token_file else TOKEN_VARIABLE)
        except TandemError as error:
            raise Failed(str(error)) from error
        tls = self._tls = None
        if options.tls_cert:
            tls = TlsFiles(authorities=options.tls_ca, certificate=options.tls_cert, key=options.tls_key)
        try:
            self.client = TrainerClient(
                options.daemon, timeout=self._timeout, reconnect_secs=reconnect_secs, token_file=token_file, tls=tls
            )
            if not self.address.startswith("unix:"):
                self._tls = tls or TlsFiles.from_environment()
        except InvalidArgument as error:
            if error.argument != "target":
                raise Failed(str(error)) from error
            refused = f"{options.daemon_source}: {error.reason}"
            raise WrongUsage(f"{refused}\nNext: tandemctl {options.command} --help") from error

    def explain(self, error: TandemError) -> str:
        """Returns an error's text: the daemon's if it answered, else what was expected and the next action."""
        cause: Any = error.__cause__
        code = cause.code().name if hasattr(cause, "code") else ""
        details = printable_lines(cause.details() or code) if code else "no answer"
        if isinstance(error, Unsupported):
            return f"expected a tandem-daemon of this version at {self._where}, found one without this call: {details}"
        if isinstance(error, DaemonTimeout):
            return (
                f"expected an answer of the daemon at {self._where}, found no answer within {self._timeout:g} s; what "
                f"was asked for may still be done\n{_CHECK}"
            )
        if not isinstance(error, DaemonUnreachable) or code == "CANCELLED":
            return details if code else str(error)
        # gRPC has one code for no daemon, for one that is stopped, and for a socket that is closed to this user.
        try:
            _connect(self.address)
        except PermissionError as refusal:
            return (
                f"expected a daemon's socket that this user may open at {self._where}, found: {refusal.strerror}"
                f"\n{_ALLOW}"
            )
        except OSError:
            return f"expected a daemon at {self._where}, found none: {details}\n{_START}"
        connected = "found no answer though there is a connection"
        advice = "" if self._tls is None else f". {self._tls.advice()}"
        return f"expected an answer of the daemon at {self._where}, {connected}: {details}\n{_CHECK}{advice}"


def _connect(address: str) -> None:
    """Connects and disconnects. OSError: that failed, or the address is neither HOST:PORT nor unix:PATH."""
    if address.startswith("unix:"):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.settimeout(_PROBE_SECS)
            probe.connect(address.removeprefix("unix:").replace("///", "/", 1))
        return
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise OSError(f"no HOST:PORT: {address}")
    socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECS).close()
