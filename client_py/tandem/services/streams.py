"""`Stream`: items that an engine sends until the stream is closed."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from tandem._native import NativeStream
from tandem.arguments import seconds
from tandem.errors import TandemError
from tandem.handles import ClosesOnExit, NotPicklable

_Item = TypeVar("_Item")


class Stream(ClosesOnExit, NotPicklable, Generic[_Item]):
    """An iterator over the items of an RPC stream, until the engine ends it or `close` is called.

    Each item has a deadline of its own. After `StepTimeout` the stream is still open; call `next` again. Items wait
    here until they are taken: some in the ring, and 64, of up to 64 MiB, in this process. Older items are dropped and
    counted in `dropped`; steps never wait for them. A `with` block ends the stream at the engine, and so does its
    collection.

    After `reconnect` or `close` of the client, items that had come can still be taken; then the stream raises
    `ClientClosed`.
    """

    _instead = "it belongs to this process's client"

    def __init__(self, native: NativeStream, convert: Callable[[dict[str, Any]], _Item], timeout: float) -> None:
        """Takes over an open stream, whose messages' fields `convert` makes items of; the services make streams."""
        self._native = native
        self._convert = convert
        self._timeout = timeout

    def next(self, timeout: float | None = None) -> _Item:
        """Waits for the next item: `timeout` seconds, 0 polls once, None: those that the stream was opened with.

        Raises:
          StopIteration: The engine ended the stream, or it was closed.
          StepTimeout: No item in time; the stream is still open.
          PeerGone: The engine has stopped or died.
          ClientClosed: The session was closed or reconnected.
          TandemError: The error with which the engine ended the stream.
        """
        values = self._native.next(self._timeout if timeout is None else seconds("timeout", timeout))
        if values is None:
            raise StopIteration
        return self._convert(values)

    def newest(self, timeout: float | None = None) -> _Item:
        """Takes all items that have come, and waits as `next` for one if none has; returns the last of them.

        The others are discarded, and not counted in `dropped`. Errors: those of `next`.
        """
        item = self.next(timeout)
        try:
            while True:
                item = self.next(0)
        except (StopIteration, TandemError):  # an error that is no time-out is raised by the next call
            return item

    @property
    def number(self) -> int:
        """The last item's number among all items that the engine made, from 1, dropped ones included; 0: none taken."""
        return self._native.number

    @property
    def dropped(self) -> int:
        """Items dropped so far because they were not taken in time."""
        return self._native.dropped

    def close(self) -> None:
        """Ends the stream, here and at the engine. Does not wait. A second call has no effect."""
        self._native.close()

    def __iter__(self) -> Self:
        """Returns the stream."""
        return self

    def __next__(self) -> _Item:
        """Waits for the next item, as `next()`."""
        return self.next()
