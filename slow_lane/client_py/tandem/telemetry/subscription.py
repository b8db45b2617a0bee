"""`Subscription`: records that the daemon streams, across broken connections."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tandem.arguments import integer
from tandem.errors import BrokenPeer, ClientClosed, Unsupported
from tandem.handles import ClosesOnExit
from tandem.telemetry.connection import Connection
from tandem.telemetry.daemon_errors import DaemonUnreachable
from tandem.telemetry.feeds import Feed

# Between two attempts to find a daemon.
_PAUSE_SECS = 0.05


class Numbered(Protocol):
    """A record with a number in its stream."""

    @property
    def seq_id(self) -> int:
        """From 1."""


Record = TypeVar("Record", bound=Numbered)


class Subscription(ClosesOnExit, Generic[Record]):
    """Iterates over the records that the daemon has and will have, each once, in order.

    If the connection breaks, or the daemon restarts, it asks for the records after the last number that it received:
    none is missing and none comes twice. It ends by itself when the run has ended and all records were sent. One thread
    iterates; any thread may close it. The end of its client closes it too. A later subscription can continue from
    `last_seq`, the last number received.
    """

    def __init__(
        self,
        connection: Connection,
        feeds: Sequence[Feed[Record]],
        since_seq: int,
        *,
        timeout: float,
        reconnect_secs: float,
    ) -> None:
        """Sends nothing before the first `next`.

        Args:
          connection: To the daemon.
          feeds: Methods for the records. The first that the daemon has is used; any daemon has the last.
          since_seq: Records with greater numbers are requested.
          timeout: Seconds until the first connection.
          reconnect_secs: Seconds to try after a connection broke, since then or since the last record.

        Raises:
          InvalidArgument: Invalid fields.
        """
        since_seq = integer(f"{feeds[-1].method}: since_seq", since_seq, 0, 2**64 - 1, "; nothing was sent")
        connection.request(feeds[-1].method, **feeds[-1].fields(since_seq))
        self.last_seq = since_seq
        self._connection = connection
        self._feeds = list(feeds)  # the first is at work
        self._received: Iterator[Record] = iter(())  # in the last message, and not yet given
        self._timeout = timeout
        self._reconnect_secs = reconnect_secs
        self._closing = threading.Event()
        self._call: Any = None
        self._open = False  # whether that is the stream, rather than a greeting
        self._connected = False
        self._broken_since: float | None = None
        self._pause = 0.0

    def __iter__(self) -> Iterator[Record]:
        """Returns the subscription itself."""
        return self

    def __next__(self) -> Record:
        """Waits for the next record.

        Raises:
          StopIteration: There will be no more, or the subscription was closed.
          ClientClosed: The client was closed, whether or not more records have come.
          UnknownRun: The daemon has no such run.
          DaemonUnreachable: No daemon answered for too long.
          BrokenPeer: The daemon sent a number again.
          TandemError: As `ERROR_TABLE` says.
        """
        while not self._closing.is_set():
            if self._connection.closed:
                raise ClientClosed(f"{self._feeds[0].method}: the client was closed before the stream's end")
            for record in self._received:
                if record.seq_id <= self.last_seq:
                    self.close()
                    raise BrokenPeer(
                        f"{self._feeds[0].method}: expected a number above {self.last_seq}, found {record.seq_id}; "
                        "the daemon and this client do not fit together"
                    )
                self.last_seq = record.seq_id
                return record
            self._receive()
        raise StopIteration

    def close(self) -> None:
        """Ends the subscription, and a `next` in another thread. A second call has no effect."""
        self._closing.set()
        call = self._call
        if call is not None:
            call.cancel()

    def _receive(self) -> None:
        """Waits for the next message."""
        try:
            message = next(self._opened())
        except StopIteration:
            self.close()
        except self._connection.grpc.RpcError as error:
            if not self._closing.is_set():
                self._broke(error)
        else:
            self._received = iter(self._feeds[0].records(message))
            self._broken_since, self._pause = None, 0.0

    def _opened(self) -> Any:
        if not self._open:
            self._find_daemon(self._reconnect_secs if self._connected else self._timeout)
            self._connected = True
            feed = self._feeds[0]
            request = self._connection.request(feed.method, **feed.fields(self.last_seq))
            self._begin(self._connection.start(feed.method, request))
            self._open = True
        return self._call

    def _find_daemon(self, timeout: float) -> None:
        """Asks until a daemon answers, the time is over, or this is closed."""
        end = time.monotonic() + timeout
        self._begin(self._connection.greet(timeout))
        while not self._connection.is_greeted(self._call):
            left = end - time.monotonic()
            if left <= 0:
                raise self._connection.unanswered(timeout)
            self._closing.wait(min(_PAUSE_SECS, left))
            self._begin(self._connection.greet(max(0.0, end - time.monotonic())))

    def _begin(self, call: Any) -> None:
        self._call = call
        if self._closing.is_set():  # while it was made
            call.cancel()

    def _broke(self, error: Any) -> None:
        """Prepares to ask again, or by the next method; raises an error that neither helps."""
        meant = self._connection.error_of(self._feeds[0].method, error)
        if isinstance(meant, Unsupported) and len(self._feeds) > 1:
            self._feeds.pop(0)
            self._open = False
            return
        now = time.monotonic()
        self._broken_since = self._broken_since or now
        if not isinstance(meant, DaemonUnreachable) or now - self._broken_since > self._reconnect_secs:
            raise meant from error
        self._open = False
        self._closing.wait(self._pause)
        self._pause = min(1.0, self._pause * 2 + 0.05)
