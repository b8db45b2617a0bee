"""`FastLaneReader`: reads frames from a segment."""

from typing import Self

from tandem._native import NativeFrameReader
from tandem.arguments import text
from tandem.errors import NotReady
from tandem.fastlane.frames import FastLaneFrame, FastLaneMetrics
from tandem.handles import ClosesOnExit


class NoSuchRun(NotReady, FileNotFoundError):
    """No run publishes under that id, or its segment is not complete yet. Try again, or check the id."""


class FastLaneReader(ClosesOnExit):
    """Reads the newest frame of a run; never delays the writer.

    Make one with `attach`. While it is open, Tandem's writers see a viewer. One thread at a time may use it. In a
    forked child it still works, but the writer does not see it. After `close`, methods raise ClientClosed.
    """

    def __init__(self, native: NativeFrameReader, run_id: str) -> None:
        """Do not call this; `attach` does."""
        self._native = native
        self.run_id = run_id
        self.width, self.height, self.channels, self.capacity, self.metadata_size = native.geometry()

    @classmethod
    def attach(cls, run_id: str) -> Self:
        """Opens the segment `mosaic.fastlane.{run_id}`, of Tandem or of MOSAIC; or the frames of that engine.

        An engine renders as long as a reader is attached. If both exist, the segment is opened.

        Raises:
          NoSuchRun: No complete segment and no engine has that name (a NotReady, and also a FileNotFoundError).
          InvalidArgument: An invalid run id.
          Unsupported: The engine makes no frames.
          LayoutMismatch: The file is no frame ring, or has another version.
          AccessDenied: The segment belongs to another user.
        """
        try:
            return cls(NativeFrameReader(text("run_id", run_id)), run_id)
        except NotReady as error:
            raise NoSuchRun(str(error)) from None

    def latest_frame(self) -> FastLaneFrame | None:
        """Reads the newest complete frame; also after the writer has left, and the same frame again.

        Returns:
          The frame; None: there is none yet, or the writer overwrote it during each attempt to read it: try again.

        Raises:
          BrokenPeer: The segment's content is invalid; attach again.
        """
        return self._frame(self._native.newest())

    def next_frame(self) -> FastLaneFrame | None:
        """Reads the newest complete frame as `latest_frame`, but each once; None: also if there is no newer one."""
        return self._frame(self._native.next())

    def _frame(self, found: tuple[int, bytes, float, float, float, bytes | None] | None) -> FastLaneFrame | None:
        if found is None:
            return None
        number, data, last_reward, rolling_return, step_rate_hz, metadata = found
        metrics = FastLaneMetrics(last_reward, rolling_return, step_rate_hz)
        return FastLaneFrame(data, self.width, self.height, self.channels, metrics, metadata, number)

    def metrics(self) -> FastLaneMetrics:
        """Returns the newest metrics; no frame is needed. The three numbers may belong to two frames."""
        return FastLaneMetrics(*self._native.metrics())

    def is_invalidated(self) -> bool:
        """Returns whether the writer has closed the segment; then `attach` opens the run's next segment.

        This is a method; MOSAIC's own reader has a property of that name.
        """
        return self._native.invalidated()

    def writer_alive(self) -> bool | None:
        """Returns whether the writer's process lives, by the kernel.

        None: unknown. The writer keeps no lock, such as MOSAIC's; or this process is a forked child, which must
        `attach` again.
        """
        return self._native.writer_alive()

    def is_replaced(self) -> bool:
        """Returns whether the run has a newer segment; then `attach` again."""
        return self._native.replaced()

    @property
    def dropped(self) -> int:
        """Frames published between those that `next_frame` returned."""
        return self._native.dropped

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._native.closed

    def close(self) -> None:
        """Closes the segment; frames that were read stay. A second call has no effect."""
        self._native.close()
