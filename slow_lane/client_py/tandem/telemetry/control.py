"""`Control`: flow control of a run's steps, and its pause."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tandem.errors import ClientClosed
from tandem.handles import ClosesOnExit
from tandem.telemetry.connection import Connection
from tandem.telemetry.daemon_errors import DaemonTimeout

Kind = Literal["grant_steps", "pause", "resume", "max_rate_hz"]


@dataclass(frozen=True)
class ControlEvent:
    """A message from the daemon to a watcher.

    Its kind is "pause": 10 credits or fewer are left, and steps stop without more (STARVED); or "resume": there are
    enough again (RESUMED). `value` is a number that belongs to it.
    """

    run_id: str
    kind: str
    value: int


class Control(ClosesOnExit):
    """A ControlStream; `TrainerClient.control` makes one.

    Once `grant` or `limit` has returned for a run, each step that this client's subscriptions to the run receive costs
    a credit; there are 200 at first. Until then steps come as fast as they are read. One thread iterates over the
    daemon's messages; any thread may send some. After a broken connection, make another.
    """

    def __init__(self, connection: Connection, timeout: float) -> None:
        """Opens the stream. `timeout`: seconds for `grant` and `limit`."""
        self._connection = connection
        self._timeout = timeout
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._received: queue.SimpleQueue[ControlEvent | None] = queue.SimpleQueue()  # None: the end
        self._changed = threading.Condition()
        self._sent = self._handled = 0
        self._ended = self._closed = False
        self._error: Exception | None = None
        self._call = connection.start(
            "ControlStream", iter(self._messages.get, None), metadata=(("acknowledge-controls", "1"),)
        )
        threading.Thread(target=self._receive, name="tandem-control", daemon=True).start()

    def grant(self, run_id: str, steps: int) -> None:
        """Adds credits: so many more steps may come. Returns when they count; errors are those of `limit`."""
        self._await(self._send(run_id, "grant_steps", steps))

    def limit(self, run_id: str, hz: int) -> None:
        """Sets how many steps may come in a second; 0: no limit. Returns when the limit holds.

        Raises:
          InvalidArgument: An invalid number.
          DaemonTimeout: The daemon has not said so in time; only Tandem's own daemon does.
          TandemError: The stream has ended, as `ERROR_TABLE` says, such as for an unknown run.
        """
        self._await(self._send(run_id, "max_rate_hz", hz))

    def pause(self, run_id: str) -> None:
        """Stops the run's processes with SIGSTOP; its status becomes PAUSE."""
        self._send(run_id, "pause", True)

    def resume(self, run_id: str) -> None:
        """Continues the run's processes with SIGCONT; its status becomes EXEC."""
        self._send(run_id, "resume", True)

    def __iter__(self) -> Iterator[ControlEvent]:
        """Yields the daemon's messages; errors are as `ERROR_TABLE` says."""
        yield from iter(self._received.get, None)
        self._received.put(None)  # for the next iteration
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ends the stream and its flow control. A second call has no effect."""
        self._closed = True
        self._messages.put(None)
        self._call.cancel()

    def _send(self, run_id: str, kind: Kind, value: int) -> int:
        """Sends a message and returns its number."""
        request = self._connection.request("ControlStream", run_id=run_id, **{kind: value})
        with self._changed:
            self._messages.put(request)
            self._sent += 1
            return self._sent

    def _await(self, number: int) -> None:
        """Waits until the daemon has handled the message."""
        with self._changed:
            in_time = self._changed.wait_for(lambda: self._handled >= number or self._ended, self._timeout)
            if self._handled >= number:
                return
        if not in_time:
            raise DaemonTimeout(
                f"ControlStream at {self._connection.target}: expected that the daemon handles the message within "
                f"{self._timeout:g} s, found no sign of it"
            )
        raise self._error or ClientClosed("ControlStream: expected an open stream, found it closed; make another")

    def _receive(self) -> None:
        try:
            for message in self._call:
                kind = message.WhichOneof("event")
                if kind is not None:
                    self._received.put(ControlEvent(message.run_id, kind, int(getattr(message, kind))))
                    continue
                with self._changed:
                    self._handled += 1
                    self._changed.notify_all()
        except self._connection.grpc.RpcError as error:
            if not self._closed:
                self._error = self._connection.error_of("ControlStream", error)
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            self._received.put(None)
