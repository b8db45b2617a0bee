"""`FastLaneWriter`: the publishing end of a segment."""

from types import TracebackType
from typing import Self

from tandem._native import NativeFrameWriter
from tandem.arguments import integer, text
from tandem.errors import InvalidArgument
from tandem.fastlane.frames import FastLaneConfig, FastLaneMetrics, Pixels

_FORMATS = {"RGB": 3, "RGBA": 4}


class FastLaneWriter:
    """Publishes frames of one run; the newest replaces older ones, and no reader is waited for.

    Make one with `create`. One thread, or several that take turns. It ends with `close` or as a context manager; a
    process that dies leaves a segment that readers know to be dead and that the next `create` replaces.

    >>> import tandem
    >>> config = tandem.FastLaneConfig(width=2, height=1, capacity=4)
    >>> with tandem.FastLaneWriter.create("docs/writer", config) as writer:
    ...     writer.publish(bytes(6), metrics=tandem.FastLaneMetrics(last_reward=1.5))
    ...     reader = tandem.FastLaneReader.attach("docs/writer")
    ...     reader.latest_frame().metrics.last_reward
    1
    1.5
    >>> reader.is_invalidated()
    True
    >>> reader.close()
    """

    def __init__(self, native: NativeFrameWriter, run_id: str, config: FastLaneConfig) -> None:
        """Not to be called: `create` does.

        Args:
          native: The segment.
          run_id: Its run.
          config: Its sizes.
        """
        self._native = native
        self._publish = native.publish
        self._metrics = FastLaneMetrics()
        self.run_id = run_id
        self.config = config

    @classmethod
    def create(cls, run_id: str, config: FastLaneConfig) -> Self:
        """Makes the segment `mosaic.fastlane.{run_id}`, "/" becoming "_".

        One that a dead writer left, or one of a program that keeps no lock, is replaced; a process that has it
        mapped keeps it.

        Args:
          run_id: The run's name.
          config: Its sizes.

        Returns:
          The writer, with nothing published.

        Raises:
          InvalidArgument: A run id or a config that cannot be (also a ValueError).
          AlreadyAttached: A live writer has that run id.
          OutOfSharedMemory: /dev/shm has no room.
          AccessDenied: The name is another user's.
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
        """Copies a frame into the next slot and makes it the newest.

        Args:
          frame: uint8[height, width, channels], or bytes or anything else of one dimension: rows from the top, R, G,
            B (A). What has one dimension may be shorter than a frame, as MOSAIC allows.
          metrics: What is shown beside it; None: what was last, and zeroes at first.
          metadata: JSON by agreement; what exceeds `config.metadata_size` bytes is cut off.

        Returns:
          The new head: frames published so far.

        Raises:
          InvalidArgument: Too long a frame, another shape or dtype (also a ValueError).
          ClientClosed: The writer was closed.
          ForkedChild: It belongs to the parent of this process.
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
        """Says whether a reader of Tandem's is there; MOSAIC's leave no trace.

        The answer is up to a second old: the kernel is asked no more often.

        Returns:
          Whether one was there.

        Raises:
          ClientClosed: The writer was closed.
          ForkedChild: It belongs to the parent of this process.
        """
        return self._native.has_reader()

    def invalidate(self) -> None:
        """Tells readers that no frame will follow. Safe twice.

        Raises:
          ClientClosed: The writer was closed.
          ForkedChild: It belongs to the parent of this process.
        """
        self._native.invalidate()

    def close(self) -> None:
        """Invalidates the segment and takes its name away. Safe twice, and in a forked child, where it does nothing."""
        self._native.close()

    def __enter__(self) -> Self:
        """Returns the writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()
