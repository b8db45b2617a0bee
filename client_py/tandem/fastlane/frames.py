"""Frames, the metrics beside them, and a segment's sizes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The types of frames that a writer accepts.
Pixels = bytes | bytearray | memoryview | NDArray[np.uint8]


@dataclass(frozen=True)
class FastLaneConfig:
    """The sizes of a segment: pixels of a frame, and bytes of one: "RGB" has 3 channels, "RGBA" 4.

    Attributes:
      capacity: Slots. A reader that is `capacity - 1` frames late loses the frame that it is reading and reads the
        newest instead. Memory is capacity times a frame: 118 MB for 128 of 640 x 480.
      metadata_size: Room for a frame's metadata, bytes. Longer metadata is cut off.
    """

    width: int
    height: int
    channels: int = 3
    pixel_format: str = "RGB"
    capacity: int = 128
    metadata_size: int = 0


@dataclass(frozen=True)
class FastLaneMetrics:
    """Numbers beside a frame in viewers: reward of the newest step, return of recent episodes, steps a second."""

    last_reward: float = 0.0
    rolling_return: float = 0.0
    step_rate_hz: float = 0.0


@dataclass(frozen=True)
class FastLaneFrame:
    """A frame, copied out of the segment.

    Attributes:
      data: The pixels, rows from the top, R, G, B (A); as many bytes as the writer gave.
      metrics: Of this frame or, if another was published meanwhile, of the next.
      metadata: JSON by convention, with "step" and "envs"; None: no metadata.
      number: Frames that had been published with this one.
    """

    data: bytes
    width: int
    height: int
    channels: int
    metrics: FastLaneMetrics
    metadata: bytes | None = None
    number: int = 0

    @property
    def view(self) -> NDArray[np.uint8]:
        """The pixels without a copy, uint8[height, width, channels], read-only, over `data`.

        Raises:
          ValueError: The writer gave fewer bytes than a complete frame has.
        """
        return np.frombuffer(self.data, np.uint8).reshape(self.height, self.width, self.channels)
