"""`Control`: a client's say in how fast a run's steps come, and whether the run goes on."""

import queue
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from tandem.telemetry.connection import Connection

Kind = Literal["grant_steps", "pause", "resume", "max_rate_hz"]


@dataclass(frozen=True)
class ControlEvent:
    """What the daemon says to a watcher.

    Attributes:
      run_id: Of which run.
      kind: "pause": few credits are left, and the steps will stop coming without more (STARVED); "resume": there are
        enough again (RESUMED).
      value: What comes with it.
    """

    run_id: str
    kind: str
    value: int


class Control:
    """A ControlStream; `TrainerClient.control` makes one.

    From its first event about a run on, the steps that this client's subscriptions to the run get cost a credit each;
    there are 200 at first. Without one they come as fast as they are read. One thread iterates over what the daemon
    says; any may say something. After a broken connection, make another.
    """

    def __init__(self, connection: Connection) -> None:
        """Opens the stream."""
        self._connection = connection
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = connection.start("ControlStream", iter(self._said.get, None))
        self._closed = False

    def grant(self, run_id: str, steps: int) -> None:
        """Adds credits.

        Args:
          run_id: The run.
          steps: How many more may come.

        Raises:
          InvalidArgument: A number that cannot be.
        """
        self._say(run_id, "grant_steps", steps)

    def limit(self, run_id: str, hz: int) -> None:
        """Sets how many steps may come in a second.

        Args:
          run_id: The run.
          hz: How many; 0: no limit.

        Raises:
          InvalidArgument: A number that cannot be.
        """
        self._say(run_id, "max_rate_hz", hz)

    def pause(self, run_id: str) -> None:
        """Stops the run's processes where they are; its status becomes PAUSE.

        Args:
          run_id: The run.
        """
        self._say(run_id, "pause", True)

    def resume(self, run_id: str) -> None:
        """Lets the run's processes go on; its status becomes EXEC.

        Args:
          run_id: The run.
        """
        self._say(run_id, "resume", True)

    def __iter__(self) -> Iterator[ControlEvent]:
        """Waits for what the daemon says.

        Yields:
          It.

        Raises:
          TandemError: As `ERROR_TABLE` says.
        """
        try:
            for message in self._call:
                kind = message.WhichOneof("event") or ""
                yield ControlEvent(message.run_id, kind, int(getattr(message, kind)) if kind else 0)
        except self._connection.grpc.RpcError as error:
            if not self._closed:
                raise self._connection.error_of("ControlStream", error) from error

    def close(self) -> None:
        """Ends the stream, and with it the credits. Safe twice."""
        self._closed = True
        self._said.put(None)
        self._call.cancel()

    def __enter__(self) -> Self:
        """Is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()

    def _say(self, run_id: str, kind: Kind, value: int) -> None:
        self._said.put(self._connection.request("ControlStream", run_id=run_id, **{kind: value}))
