"""What goes through the Fast Lane: frames, the numbers beside them, and a segment's sizes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# What a writer takes for a frame.
Pixels = bytes | bytearray | memoryview | NDArray[np.uint8]


@dataclass(frozen=True)
class FastLaneConfig:
    """What a segment holds.

    Attributes:
      width: Of a frame, pixels.
      height: Of a frame, pixels.
      channels: Bytes of a pixel: 3 or 4.
      pixel_format: "RGB" with 3 channels, "RGBA" with 4.
      capacity: Slots. A reader that is slower than `capacity - 1` frames loses the frame that it is at and takes the
        newest instead; memory is capacity times a frame, 118 MB for 128 of 640 x 480.
      metadata_size: Room for a frame's metadata, bytes. What is longer is cut off.
    """

    width: int
    height: int
    channels: int = 3
    pixel_format: str = "RGB"
    capacity: int = 128
    metadata_size: int = 0


@dataclass(frozen=True)
class FastLaneMetrics:
    """What is shown beside a frame.

    Attributes:
      last_reward: Of the newest step.
      rolling_return: Of recent episodes, as the writer counts.
      step_rate_hz: Steps a second.
    """

    last_reward: float = 0.0
    rolling_return: float = 0.0
    step_rate_hz: float = 0.0


@dataclass(frozen=True)
class FastLaneFrame:
    """A frame, copied out of the segment: it stays as it is.

    Attributes:
      data: The pixels, rows from the top, R, G, B (A); as many bytes as the writer gave.
      width: Pixels.
      height: Pixels.
      channels: Bytes of a pixel.
      metrics: Those of this frame or, if another was published meanwhile, of the next.
      metadata: JSON by agreement, with "step" and "envs"; None without any.
      number: How many frames had been published when it was, itself included.
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
        """The pixels without a copy.

        Returns:
          uint8[height, width, channels], read-only, over `data`.

        Raises:
          ValueError: The writer gave fewer bytes than a whole frame has.
        """
        return np.frombuffer(self.data, np.uint8).reshape(self.height, self.width, self.channels)
