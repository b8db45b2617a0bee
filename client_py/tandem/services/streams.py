"""`Stream`: what an engine sends again and again."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar

from tandem._native import NativeStream
from tandem.arguments import seconds
from tandem.errors import TandemError

_Item = TypeVar("_Item")


class Stream(Generic[_Item]):
    """An iterator over what an engine sends, until it ends the stream or `close` is called.

    Each item has a deadline of its own; after `StepTimeout` the stream goes on, and may be asked again. Items wait
    until they are taken, some in the ring and 64, of up to 64 MiB, here; the oldest beyond that are lost and counted in
    `dropped`, and the steps are never held up. Use it in a `with` block, or leave it to be collected: both end it at
    the engine.

    After `reconnect` or `close` of the client what came before may still be taken, then it raises `ClientClosed`.
    """

    def __init__(self, native: NativeStream, convert: Callable[[dict[str, Any]], _Item], timeout: float) -> None:
        """Takes over an open stream; the services make them.

        Args:
          native: The stream.
          convert: Makes an item of its fields.
          timeout: Seconds to wait for each item.
        """
        self._native = native
        self._convert = convert
        self._timeout = timeout

    def next(self, timeout: float | None = None) -> _Item:
        """Waits for the next item.

        Args:
          timeout: Seconds; 0 looks once; None: what the stream was opened with.

        Returns:
          The item.

        Raises:
          StopIteration: The engine ended the stream, or it was closed.
          StepTimeout: No item in time; the stream goes on.
          PeerGone: The engine has stopped or died.
          ClientClosed: The session was closed or reconnected.
          TandemError: What the engine ended the stream with.
        """
        values = self._native.next(self._timeout if timeout is None else seconds("timeout", timeout))
        if values is None:
            raise StopIteration
        return self._convert(values)

    def newest(self, timeout: float | None = None) -> _Item:
        """Takes all items that have come, and waits for one if none has.

        Args:
          timeout: Seconds; 0 looks once; None: what the stream was opened with.

        Returns:
          The last of them; the others are gone, and not counted in `dropped`.

        Raises:
          StopIteration: As `next`.
          TandemError: As `next`.
        """
        item = self.next(timeout)
        try:
            while True:
                item = self.next(0)
        except (StopIteration, TandemError):  # what is not a time-out is there for the next call
            return item

    @property
    def number(self) -> int:
        """The last item's place in the stream, from 1 over all that were made, lost ones included; 0: none taken."""
        return self._native.number

    @property
    def dropped(self) -> int:
        """Items lost so far, since they were not taken in time."""
        return self._native.dropped

    def close(self) -> None:
        """Ends the stream, here and at the engine. Doesn't wait; safe twice."""
        self._native.close()

    def __iter__(self) -> Self:
        """Returns the stream."""
        return self

    def __next__(self) -> _Item:
        """Waits for the next item.

        Returns:
          As `next`.

        Raises:
          StopIteration: As `next`.
          TandemError: As `next`.
        """
        return self.next()

    def __enter__(self) -> Self:
        """Returns the stream."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Ends the stream."""
        self.close()

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied.

        Raises:
          TypeError: Always.
        """
        raise TypeError("a Stream can be neither pickled nor copied: it belongs to this process's client")
