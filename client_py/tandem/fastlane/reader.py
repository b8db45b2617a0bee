"""`FastLaneReader`: the looking end of a segment."""

from types import TracebackType
from typing import Self

from tandem._native import NativeFrameReader
from tandem.arguments import text
from tandem.errors import NotReady
from tandem.fastlane.frames import FastLaneFrame, FastLaneMetrics


class NoSuchRun(NotReady, FileNotFoundError):
    """No run publishes under that id yet, or its segment is not written yet. Try again, or check the id."""


class FastLaneReader:
    """Takes the newest frame of a run; nothing it does slows the writer.

    Make one with `attach`. While it is open, Tandem's writers see a viewer. One thread, or several that
    take turns. In a forked child it goes on, unknown to the writer.
    """

    def __init__(self, native: NativeFrameReader, run_id: str) -> None:
        """Not to be called: `attach` does.

        Args:
          native: The segment.
          run_id: Its run.
        """
        self._native = native
        self.run_id = run_id
        self.width, self.height, self.channels, self.capacity, self.metadata_size = native.geometry()

    @classmethod
    def attach(cls, run_id: str) -> Self:
        """Opens the segment `mosaic.fastlane.{run_id}`, a Tandem's or a MOSAIC's.

        Args:
          run_id: The run's name.

        Returns:
          The reader.

        Raises:
          NoSuchRun: There is none, or not yet (a NotReady, and also a FileNotFoundError).
          InvalidArgument: A run id that cannot be.
          LayoutMismatch: It is no frame ring, or of another version.
          AccessDenied: It is another user's.
        """
        try:
            return cls(NativeFrameReader(text("run_id", run_id)), run_id)
        except NotReady as error:
            raise NoSuchRun(str(error)) from None

    def latest_frame(self) -> FastLaneFrame | None:
        """Takes the newest whole frame, again and again, also after the writer has left.

        Returns:
          The frame; None: there is none yet, or it was overwritten while it was read, each time: try again.

        Raises:
          BrokenPeer: What the segment says cannot be; attach again.
          ClientClosed: The reader was closed.
        """
        return self._frame(self._native.newest())

    def next_frame(self) -> FastLaneFrame | None:
        """Takes the newest whole frame, each once.

        Returns:
          The frame; None: no newer one, or as for `latest_frame`.

        Raises:
          BrokenPeer: What the segment says cannot be; attach again.
          ClientClosed: The reader was closed.
        """
        return self._frame(self._native.next())

    def _frame(self, found: tuple[int, bytes, float, float, float, bytes | None] | None) -> FastLaneFrame | None:
        if found is None:
            return None
        number, data, last_reward, rolling_return, step_rate_hz, metadata = found
        metrics = FastLaneMetrics(last_reward, rolling_return, step_rate_hz)
        return FastLaneFrame(data, self.width, self.height, self.channels, metrics, metadata, number)

    def metrics(self) -> FastLaneMetrics:
        """Reads the newest metrics, frame or no frame.

        Returns:
          Three numbers, each whole; they may be of two frames.

        Raises:
          ClientClosed: The reader was closed.
        """
        return FastLaneMetrics(*self._native.metrics())

    def is_invalidated(self) -> bool:
        """Says whether the writer has left and said so; then `attach` again, for the run's next segment.

        A method; MOSAIC's own reader has a property of that name.

        Returns:
          Whether it has.

        Raises:
          ClientClosed: The reader was closed.
        """
        return self._native.invalidated()

    def writer_alive(self) -> bool | None:
        """Asks the kernel whether the writer lives.

        Returns:
          Whether it does; None: it cannot be known, of a program that keeps no lock, such as MOSAIC's, or by a forked
          child of this process, whose lock is gone; attach there anew.

        Raises:
          ClientClosed: The reader was closed.
        """
        return self._native.writer_alive()

    def is_replaced(self) -> bool:
        """Says whether the run has another segment by now; then `attach` again.

        Returns:
          Whether it has.

        Raises:
          ClientClosed: The reader was closed.
        """
        return self._native.replaced()

    @property
    def dropped(self) -> int:
        """Frames that passed between those that `next_frame` delivered."""
        return self._native.dropped

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._native.closed

    def close(self) -> None:
        """Lets the segment go; frames that were taken stay. Safe twice."""
        self._native.close()

    def __enter__(self) -> Self:
        """Returns the reader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()
