"""A connection to the daemon: makes calls, and errors of what gRPC raises."""

import os
import re
from typing import Any

from tandem.arguments import shown, text
from tandem.errors import ClientClosed, InvalidArgument
from tandem.printable import printable_lines
from tandem.telemetry.daemon_errors import ERROR_TABLE, DaemonError, DaemonUnreachable
from tandem.telemetry.token_file import read_token
from tandem.telemetry.wire import Method, load

TARGET_VARIABLE = "TANDEM_DAEMON"
DEFAULT_TARGET = "127.0.0.1:50055"

# What gRPC takes for HOST:PORT, or for several of them with commas between. (One with more colons is an IPv6 address
# without a port.)
_ADDRESSES = re.compile(r"(?!unix:|unix-abstract:|vsock:)(?:dns:(?://[^/]*/)?|ipv[46]:)?([^/]+)")
_HOST_AND_PORT = re.compile(r"(?:\[.*\]|[^:]*):([^:]*)")
_LAST_PORT = 65535

_MAX_MESSAGE_BYTES = 64 << 20
_LONGEST_SECS = 1e9
_OPTIONS = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    # A machine that has died is noticed by a stream, too, on which nothing comes for long: without the second, an older
    # gRPC stops to ask after two pings.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.http2.max_pings_without_data", 0),
    # A daemon that comes back is found at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A connection of its own: the daemon counts credits by connection.
    ("grpc.use_local_subchannel_pool", 1),
    # ChannelOptions.SingleThreadedUnaryStream, experimental in grpcio: who iterates over a stream receives it.
    # Else a thread of grpcio hands over each message, and a step takes seven times as long.
    ("SingleThreadedUnaryStream", 1),
)


class Connection:
    """A channel to the daemon. Safe to use from any thread."""

    def __init__(self, target: str | None, token_file: str | os.PathLike[str] | None = None) -> None:
        """Connects when something is called.

        Args:
          target: As gRPC takes it; None: TANDEM_DAEMON's, or else 127.0.0.1:50055.
          token_file: As `read_token` takes it.

        Raises:
          AccessDenied: The token's file is another user's, or open to other users.
          InvalidArgument: No string, an empty one, or one whose port cannot be.
          ModuleNotFoundError: There is no grpc or protobuf.
        """
        name = "target"
        if target is None:
            name = f"target, from {TARGET_VARIABLE}"
            target = os.environ.get(TARGET_VARIABLE) or DEFAULT_TARGET
        if not isinstance(target, str) or not target:
            raise InvalidArgument(f"{name}: expected HOST:PORT or unix:PATH, found {shown(target)}")
        _check_ports(name, text(name, target))
        self.target = target
        token = read_token(token_file)
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self._wire = load()
        self.grpc = self._wire.grpc
        self._channel = self.grpc.insecure_channel(target, options=_OPTIONS)
        self._callables: dict[str, Any] = {}
        self.closed = False

    def method(self, name: str) -> Method:
        """Looks up one of the service's methods.

        Args:
          name: Such as "SubmitRun".

        Returns:
          The method.
        """
        return self._wire.methods[name]

    def request(self, name: str, **fields: Any) -> Any:
        """Makes a request.

        Args:
          name: Of the method.
          fields: Of the message.

        Returns:
          The message.

        Raises:
          InvalidArgument: A value that its field cannot have, or more of it than a message may hold.
        """
        method = self.method(name)
        for field, value in fields.items():
            # For protobuf bytes are text, and None is a field that was not given.
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
        """Starts a call that streams; what it raises later is for `error_of`.

        Args:
          name: Of the method.
          arguments: The request, or an iterator of requests.
          options: Such as metadata.

        Returns:
          grpc's call.

        Raises:
          ClientClosed: The client was closed.
        """
        self._check_open()
        metadata = (*(options.pop("metadata", None) or ()), *self._metadata)
        try:
            return self._callable(name)(*arguments, metadata=metadata, **options)
        except ValueError:  # closed at this moment
            self._check_open()
            raise

    def call(self, name: str, argument: Any, *, timeout: float | None, metadata: Any = None) -> Any:
        """Makes a call with one response.

        Args:
          name: Of the method.
          argument: The request, or an iterator of requests.
          timeout: Seconds; None: no limit.
          metadata: Pairs of strings.

        Returns:
          The response.

        Raises:
          TandemError: As `ERROR_TABLE` says.
        """
        try:
            return self.start(name, argument, timeout=_deadline(timeout), metadata=metadata)
        except self.grpc.RpcError as error:
            raise self.error_of(name, error) from error

    def drain(self, name: str, argument: Any, *, timeout: float | None) -> list[Any]:
        """Makes a call with several responses, all of which come within the deadline.

        Args:
          name: Of the method.
          argument: The request, or an iterator of requests.
          timeout: Seconds; None: no limit.

        Returns:
          The responses.

        Raises:
          TandemError: As `ERROR_TABLE` says.
        """
        try:
            return list(self.start(name, argument, timeout=_deadline(timeout)))
        except self.grpc.RpcError as error:
            raise self.error_of(name, error) from error

    def error_of(self, name: str, error: Any) -> Exception:
        """Says what a failed call means.

        Args:
          name: Of the method.
          error: grpc's.

        Returns:
          The exception to raise.
        """
        if self.closed:
            return ClientClosed(f"{name}: the client was closed during the call")
        code = error.code().name
        kind = ERROR_TABLE.get(code, DaemonError)
        after = ""
        if kind is DaemonUnreachable:
            after = f". Start a daemon there, or set {TARGET_VARIABLE} to where one listens"
        return kind(f"{name} at {self.target}: {printable_lines(error.details() or code)}{after}")

    def greet(self, timeout: float) -> Any:
        """Asks for the daemon's health, as soon as there is a daemon.

        Args:
          timeout: Seconds that this may take.

        Returns:
          grpc's future of the answer; for `is_greeted`.

        Raises:
          ClientClosed: The client was closed.
        """
        self._check_open()
        try:
            return self._callable("GetHealth").future(
                self.request("GetHealth"), timeout=_deadline(timeout), wait_for_ready=True, metadata=self._metadata
            )
        except ValueError:  # closed at this moment
            self._check_open()
            raise

    def is_greeted(self, greeting: Any) -> bool:
        """Waits for what `greet` asked.

        Args:
          greeting: What it returned.

        Returns:
          Whether a daemon answered, or somebody cancelled it. If not, the time may not be over: a connection that is
          about to break says at once that nobody is there, and so may a daemon that is about to end.

        Raises:
          ClientClosed: The client was closed.
        """
        try:
            error = greeting.exception()
        except self.grpc.FutureCancelledError:
            return True  # whoever cancelled it knows
        if error is None or error.code().name not in ("DEADLINE_EXCEEDED", "UNAVAILABLE"):
            return True
        self._check_open()
        return False

    def nobody(self, timeout: float) -> DaemonUnreachable:
        """Says that no daemon answered.

        Args:
          timeout: Seconds for which it was asked for.

        Returns:
          The exception to raise.
        """
        return DaemonUnreachable(
            f"expected a daemon at {self.target} within {timeout:g} s, found none. "
            f"Start one there, or set {TARGET_VARIABLE} to where one listens"
        )

    def close(self) -> None:
        """Ends every call. Safe twice."""
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
    """Refuses a message that gRPC would: by its status for that, a daemon says that its disk is full.

    Args:
      name: Of the method.
      message: The request.
      after: What follows in the error's text.

    Raises:
      InvalidArgument: It is too large.
    """
    if (size := message.ByteSize()) > _MAX_MESSAGE_BYTES:
        raise InvalidArgument(
            f"{name}: expected a message of at most {_MAX_MESSAGE_BYTES} bytes, found {size}; make it smaller; {after}"
        )


def _check_ports(name: str, target: str) -> None:
    """Refuses ports that do not exist.

    gRPC takes a host's modulo 65536, and 5 for an address's 5x. What it refuses itself, each call tells, and not why.
    """
    addresses = _ADDRESSES.fullmatch(target)
    if addresses is None:
        return
    for address in addresses[1].split(","):
        found = _HOST_AND_PORT.fullmatch(address)
        if found and not (re.fullmatch("[0-9]{1,5}", found[1]) and 1 <= int(found[1]) <= _LAST_PORT):
            raise InvalidArgument(
                f"{name}: expected HOST:PORT with a port in 1 .. {_LAST_PORT}, or unix:PATH, found {shown(target)}"
            )


def _deadline(seconds: float | None) -> float | None:
    """What gRPC takes for it: a time that is beyond its clock would have passed at once."""
    return None if seconds is None or seconds > _LONGEST_SECS else seconds
