"""`FastLaneWriter`: publishes frames in a segment."""

from typing import Self

from tandem._native import NativeFrameWriter
from tandem.arguments import integer, text
from tandem.errors import InvalidArgument
from tandem.fastlane.frames import FastLaneConfig, FastLaneMetrics, Pixels
from tandem.handles import ClosesOnExit

_FORMATS = {"RGB": 3, "RGBA": 4}


class FastLaneWriter(ClosesOnExit):
    """Publishes frames of one run; the newest replaces older ones, and the writer waits for no reader.

    Make one with `create`. One thread at a time may use it. It ends with `close` or as a context manager. If its
    process dies, readers see that, and the next `create` replaces the segment. Other methods raise ClientClosed after
    `close`, and ForkedChild if the writer belongs to the parent of this process.

    >>> import tandem
    >>> config = tandem.fastlane.FastLaneConfig(width=2, height=1, capacity=4)
    >>> with tandem.fastlane.FastLaneWriter.create("docs/writer", config) as writer:
    ...     writer.publish(bytes(6), metrics=tandem.fastlane.FastLaneMetrics(last_reward=1.5))
    ...     reader = tandem.FastLaneReader.attach("docs/writer")
    ...     reader.latest_frame().metrics.last_reward
    1
    1.5
    >>> reader.is_invalidated()
    True
    >>> reader.close()
    """

    def __init__(self, native: NativeFrameWriter, run_id: str, config: FastLaneConfig) -> None:
        """Do not call this; `create` does."""
        self._native = native
        self._publish = native.publish
        self._metrics = FastLaneMetrics()
        self.run_id = run_id
        self.config = config

    @classmethod
    def create(cls, run_id: str, config: FastLaneConfig) -> Self:
        """Makes the segment `mosaic.fastlane.{run_id}`, with "/" replaced by "_".

        A segment of a dead writer, or of a program that keeps no lock, is replaced; processes that have mapped it keep
        it.

        Raises:
          InvalidArgument: An invalid run id or config (also a ValueError).
          AlreadyAttached: A live writer has that run id.
          OutOfSharedMemory: /dev/shm has no room.
          AccessDenied: The name belongs to another user.
        """
        if _FORMATS.get(config.pixel_format) != config.channels:
            raise InvalidArgument(
                "config: expected pixel_format 'RGB' with 3 channels or 'RGBA' with 4, "
                f"found {config.pixel_format!r} with {config.channels!r}"
            )
        native = NativeFrameWriter(
            text("run_id", run_id),
            integer("width", config.width, 1),
            integer("height", config.height, 1),
            config.channels,
            integer("capacity", config.capacity, 1),
            integer("metadata_size", config.metadata_size, 0),
        )
        return cls(native, run_id, config)

    def publish(
        self, frame: Pixels, *, metrics: FastLaneMetrics | None = None, metadata: bytes | str | None = None
    ) -> int:
        """Copies a frame into the next slot and makes it the newest; returns the new head: frames published so far.

        Args:
          frame: uint8[height, width, channels], or bytes or any other buffer of one dimension: rows from the top, R, G,
            B (A). A buffer of one dimension may be shorter than a frame, as MOSAIC allows.
          metrics: Numbers to show beside it; None: the last ones, zeros at first.
          metadata: JSON by convention; bytes beyond `config.metadata_size` are cut off.

        Raises:
          InvalidArgument: A frame that is too long, or has another shape or dtype (also a ValueError).
        """
        if metrics is None:
            metrics = self._metrics
        if isinstance(metadata, str):
            metadata = text("metadata", metadata).encode()
        head = self._publish(frame, metrics.last_reward, metrics.rolling_return, metrics.step_rate_hz, metadata)
        self._metrics = metrics
        return head

    @property
    def head(self) -> int:
        """Frames published so far."""
        return self._native.head

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._native.closed

    def has_reader(self) -> bool:
        """Returns whether a reader of Tandem's has the segment open; MOSAIC's readers cannot be seen.

        The answer is up to a second old: the kernel is asked once a second at most.
        """
        return self._native.has_reader()

    def invalidate(self) -> None:
        """Marks the segment as ended for its readers. A second call has no effect."""
        self._native.invalidate()

    def close(self) -> None:
        """Invalidates the segment and removes its name. No effect when called again, or in a forked child."""
        self._native.close()
