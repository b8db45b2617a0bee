"""A connection to the daemon: its calls, and their errors."""

import os
import re
from typing import Any

from tandem.arguments import shown, text
from tandem.errors import ClientClosed, InvalidArgument
from tandem.printable import printable_lines
from tandem.telemetry.daemon_errors import ERROR_TABLE, DaemonError, DaemonUnreachable
from tandem.telemetry.tls_files import TlsFiles
from tandem.telemetry.token_file import read_token
from tandem.telemetry.wire import Method, load

TARGET_VARIABLE = "TANDEM_DAEMON"
DEFAULT_TARGET = "127.0.0.1:50055"

# HOST:PORT for gRPC, or several with commas between. (One with more colons is an IPv6 address without a port.)
_ADDRESSES = re.compile(r"(?!unix:|unix-abstract:|vsock:)(?:dns:(?://[^/]*/)?|ipv[46]:)?([^/]+)")
_HOST_AND_PORT = re.compile(r"(?:\[.*\]|[^:]*):([^:]*)")
_LAST_PORT = 65535

_LONGEST_SECS = 1e9
_OPTIONS = (
    # Pings detect a dead machine on an idle stream. Without the second option, an older gRPC stops after two pings.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.http2.max_pings_without_data", 0),
    # A daemon that comes back is found at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A connection of its own: the daemon counts credits by connection.
    ("grpc.use_local_subchannel_pool", 1),
    # ChannelOptions.SingleThreadedUnaryStream, experimental in grpcio: the iterating thread receives the messages.
    # Otherwise a thread of grpcio hands over each message, and a step takes seven times as long.
    ("SingleThreadedUnaryStream", 1),
)


class Connection:
    """A channel to the daemon. Safe to use from any thread."""

    def __init__(
        self, target: str | None, token_file: str | os.PathLike[str] | None = None, tls: TlsFiles | None = None
    ) -> None:
        """Opens no connection yet; the first call does. Arguments and errors are those of `TrainerClient`."""
        name = "target"
        if target is None:
            name = f"target, from {TARGET_VARIABLE}"
            target = os.environ.get(TARGET_VARIABLE) or DEFAULT_TARGET
        if not isinstance(target, str) or not target:
            raise InvalidArgument.of(name, f"expected HOST:PORT or unix:PATH, found {shown(target)}")
        _check_ports(name, text(name, target))
        self.target = target
        token = read_token(token_file)
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self._wire = load()
        self.grpc = self._wire.grpc
        most = self._wire.constants["MAX_MESSAGE_BYTES"]
        sizes = (("grpc.max_receive_message_length", most), ("grpc.max_send_message_length", most))
        options = (*sizes, *_OPTIONS)
        # A daemon's Unix socket is for programs of its machine, and in plaintext.
        is_local = target.startswith(("unix:", "unix-abstract:"))
        tls = None if is_local else tls or TlsFiles.from_environment()
        self._tls = tls
        self._channel = (
            self.grpc.insecure_channel(target, options=options)
            if tls is None
            else self.grpc.secure_channel(target, tls.credentials(), options=options)
        )
        self._callables: dict[str, Any] = {}
        self.closed = False

    def method(self, name: str) -> Method:
        """Returns one of the service's methods by its name, such as "SubmitRun"."""
        return self._wire.methods[name]

    def request(self, name: str, **fields: Any) -> Any:
        """Makes the request of a method; InvalidArgument: an invalid value, or too large a message."""
        method = self.method(name)
        for field, value in fields.items():
            # Protobuf accepts bytes for a text, and None for no field.
            is_string = method.fields[field].type == method.fields[field].TYPE_STRING
            for each in value if isinstance(value, tuple) else (value,):  # a tuple: of a repeated field
                if each is None or (is_string and not isinstance(each, str)):
                    expected = "a string" if is_string else "a value"
                    raise InvalidArgument(
                        f"{name}: {field}: expected {expected}, found {shown(each)}; nothing was sent"
                    )
                if is_string:
                    text(f"{name}: {field}", each, "; nothing was sent")
        try:
            message = method.request(**fields)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{name}: {error}; nothing was sent") from error
        check_size(name, message, "nothing was sent")
        return message

    def start(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Starts a streaming call and returns grpc's call, whose errors `error_of` converts.

        `arguments` is the request, or an iterator of requests. ClientClosed: the client was closed.
        """
        self._check_open()
        metadata = (*(options.pop("metadata", None) or ()), *self._metadata)
        try:
            return self._callable(name)(*arguments, metadata=metadata, **options)
        except ValueError:  # closed at this moment
            self._check_open()
            raise

    def call(self, name: str, argument: Any, *, timeout: float | None, metadata: Any = None) -> Any:
        """Makes a call and returns its one response; `argument` is the request, or an iterator of requests.

        `timeout` is in seconds, None: no limit; `metadata` is pairs of strings. Errors are those of `ERROR_TABLE`.
        """
        try:
            return self.start(name, argument, timeout=_deadline(timeout), metadata=metadata)
        except self.grpc.RpcError as error:
            raise self.error_of(name, error) from error

    def drain(self, name: str, argument: Any, *, timeout: float | None) -> list[Any]:
        """Makes a call and returns its responses, all of which must come within `timeout` seconds (None: no limit)."""
        try:
            return list(self.start(name, argument, timeout=_deadline(timeout)))
        except self.grpc.RpcError as error:
            raise self.error_of(name, error) from error

    def error_of(self, name: str, error: Any) -> Exception:
        """Returns the exception to raise for grpc's error of a method."""
        if self.closed:
            return ClientClosed(f"{name}: the client was closed during the call")
        code = error.code().name
        kind = ERROR_TABLE.get(code, DaemonError)
        after = f". {self._advice()}" if kind is DaemonUnreachable else ""
        return kind(f"{name} at {self.target}: {printable_lines(error.details() or code)}{after}")

    def greet(self, timeout: float) -> Any:
        """Asks for the daemon's health, within `timeout` seconds; returns grpc's future, for `is_greeted`."""
        self._check_open()
        try:
            return self._callable("GetHealth").future(
                self.request("GetHealth"), timeout=_deadline(timeout), wait_for_ready=True, metadata=self._metadata
            )
        except ValueError:  # closed at this moment
            self._check_open()
            raise

    def is_greeted(self, greeting: Any) -> bool:
        """Waits for the future of `greet`; returns whether a daemon answered, or the future was cancelled.

        False does not mean that the time is over: a connection that is about to break fails at once, and so does a
        daemon that is about to end. ClientClosed: the client was closed.
        """
        try:
            error = greeting.exception()
        except self.grpc.FutureCancelledError:
            return True
        if error is None or error.code().name not in ("DEADLINE_EXCEEDED", "UNAVAILABLE"):
            return True
        self._check_open()
        return False

    def unanswered(self, timeout: float) -> DaemonUnreachable:
        """Returns the exception for a daemon that did not answer within `timeout` seconds."""
        return DaemonUnreachable(
            f"expected a daemon at {self.target} within {timeout:g} s, found none. {self._advice()}"
        )

    def _advice(self) -> str:
        after = "" if self._tls is None else f". {self._tls.advice()}"
        return f"Start a daemon there, or set {TARGET_VARIABLE} to where one listens{after}"

    def close(self) -> None:
        """Ends every call. A second call has no effect."""
        self.closed = True
        self._channel.close()

    def _callable(self, name: str) -> Any:
        # Making one takes a tenth of a call.
        if name not in self._callables:
            self._callables[name] = self.method(name).on(self._channel)
        return self._callables[name]

    def _check_open(self) -> None:
        if self.closed:
            raise ClientClosed("expected an open TrainerClient, found it closed; make another")


def check_size(name: str, message: Any, after: str) -> None:
    """Raises InvalidArgument for a message too large for gRPC, whose own status would mean a full disk."""
    most = load().constants["MAX_MESSAGE_BYTES"]
    if (size := message.ByteSize()) > most:
        raise InvalidArgument(
            f"{name}: expected a message of at most {most} bytes, found {size}; make it smaller; {after}"
        )


def _check_ports(name: str, target: str) -> None:
    """Refuses ports that do not exist.

    gRPC takes a host's port modulo 65536, and 5 for an address's 5x. Its other refusals come with each call, without a
    reason.
    """
    addresses = _ADDRESSES.fullmatch(target)
    if addresses is None:
        return
    for address in addresses[1].split(","):
        found = _HOST_AND_PORT.fullmatch(address)
        if found and not (re.fullmatch("[0-9]{1,5}", found[1]) and 1 <= int(found[1]) <= _LAST_PORT):
            raise InvalidArgument.of(
                name, f"expected HOST:PORT with a port in 1 .. {_LAST_PORT}, or unix:PATH, found {shown(target)}"
            )


def _deadline(seconds: float | None) -> float | None:
    """Returns a timeout for gRPC, for which a time beyond its clock has already passed."""
    return None if seconds is None or seconds > _LONGEST_SECS else seconds
