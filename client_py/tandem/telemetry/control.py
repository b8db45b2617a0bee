"""`Control`: flow control of a run's steps, and its pause."""

import queue
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tandem.handles import ClosesOnExit
from tandem.telemetry.connection import Connection

Kind = Literal["grant_steps", "pause", "resume", "max_rate_hz"]


@dataclass(frozen=True)
class ControlEvent:
    """A message from the daemon to a watcher.

    Attributes:
      run_id: The run.
      kind: "pause": 10 credits or fewer are left, and steps stop without more (STARVED); "resume": there are enough
        again (RESUMED).
      value: A number that belongs to it.
    """

    run_id: str
    kind: str
    value: int


class Control(ClosesOnExit):
    """A ControlStream; `TrainerClient.control` makes one.

    Once the daemon has handled the first message about a run, each step that this client's subscriptions to the run
    receive costs a credit; there are 200 at first. Until then steps come as fast as they are read. One thread iterates
    over the daemon's messages; any thread may send some. After a broken connection, make another.
    """

    def __init__(self, connection: Connection) -> None:
        """Opens the stream."""
        self._connection = connection
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = connection.start("ControlStream", iter(self._messages.get, None))
        self._closed = False

    def grant(self, run_id: str, steps: int) -> None:
        """Adds credits: so many more steps may come. InvalidArgument: an invalid number."""
        self._send(run_id, "grant_steps", steps)

    def limit(self, run_id: str, hz: int) -> None:
        """Sets how many steps may come in a second; 0: no limit. InvalidArgument: an invalid number."""
        self._send(run_id, "max_rate_hz", hz)

    def pause(self, run_id: str) -> None:
        """Stops the run's processes with SIGSTOP; its status becomes PAUSE."""
        self._send(run_id, "pause", True)

    def resume(self, run_id: str) -> None:
        """Continues the run's processes with SIGCONT; its status becomes EXEC."""
        self._send(run_id, "resume", True)

    def __iter__(self) -> Iterator[ControlEvent]:
        """Yields the daemon's messages; errors are as `ERROR_TABLE` says."""
        try:
            for message in self._call:
                kind = message.WhichOneof("event") or ""
                yield ControlEvent(message.run_id, kind, int(getattr(message, kind)) if kind else 0)
        except self._connection.grpc.RpcError as error:
            if not self._closed:
                raise self._connection.error_of("ControlStream", error) from error

    def close(self) -> None:
        """Ends the stream and its flow control. A second call has no effect."""
        self._closed = True
        self._messages.put(None)
        self._call.cancel()

    def _send(self, run_id: str, kind: Kind, value: int) -> None:
        self._messages.put(self._connection.request("ControlStream", run_id=run_id, **{kind: value}))
