"""Frames, the metrics beside them, and a segment's sizes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The types of frames that a writer accepts.
Pixels = bytes | bytearray | memoryview | NDArray[np.uint8]


@dataclass(frozen=True)
class FastLaneConfig:
    """The sizes of a segment.

    Attributes:
      width: Of a frame, pixels.
      height: Of a frame, pixels.
      channels: Bytes of a pixel: 3 or 4.
      pixel_format: "RGB" with 3 channels, "RGBA" with 4.
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
    """Numbers that viewers show beside a frame.

    Attributes:
      last_reward: Of the newest step.
      rolling_return: Of recent episodes, as the writer counts them.
      step_rate_hz: Steps a second.
    """

    last_reward: float = 0.0
    rolling_return: float = 0.0
    step_rate_hz: float = 0.0


@dataclass(frozen=True)
class FastLaneFrame:
    """A frame, copied out of the segment.

    Attributes:
      data: The pixels, rows from the top, R, G, B (A); as many bytes as the writer gave.
      width: Pixels.
      height: Pixels.
      channels: Bytes of a pixel.
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
