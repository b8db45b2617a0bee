"""`Image`: a picture that an engine drew."""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.errors import BrokenPeer, InvalidArgument


class CameraKind(enum.IntEnum):
    """What a picture shows.

    Attributes:
      COLOR: What a camera sees.
      DEPTH: How far it is.
    """

    COLOR = 0
    DEPTH = 1


@dataclass(frozen=True, eq=False)
class Image:
    """A picture, as the engine packed it; `pixels`, `depth` or `encoded` unpack it, whichever it is.

    Attributes:
      data: uint8[n], the bytes as they came; the caller's own.
      width: Pixels.
      height: Pixels.
      channels: 3: red, green, blue; 4: and alpha; 1: depth.
      format: "raw", "png" or "jpeg"; "gray16": depth.
      depth_scale: Metres for each step of `depth_codes`; 0: no depth.
      name: The camera's or viewport's.
      env_id: The environment.
      frame_seq: How many exchanges were answered when the environment was as shown.
      timestamp_ms: Wall clock: milliseconds since the Unix epoch.
      frame_number: Which picture of its stream, from 1; 0: of no stream.
    """

    data: NDArray[np.uint8]
    width: int
    height: int
    channels: int
    format: str
    depth_scale: float
    name: str
    env_id: int
    frame_seq: int
    timestamp_ms: int
    frame_number: int

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """Colours, uint8[height, width, channels], top row first: a view of `data`.

        Raises:
          InvalidArgument: It is depth, or a file; `depth` or `encoded` has it.
          BrokenPeer: The sizes do not fit the data.
        """
        self._expect("pixels", "raw")
        return self._shaped(self.data, (self.height, self.width, self.channels))

    @property
    def depth_codes(self) -> NDArray[np.uint16]:
        """Depth, uint16[height, width], in steps of `depth_scale`: a view of `data`.

        Raises:
          InvalidArgument: It is no depth.
          BrokenPeer: The sizes do not fit the data.
        """
        self._expect("depth", "gray16")
        if self.data.size % 2:
            raise BrokenPeer(f"expected two bytes for each pixel, found {self.data.size} bytes; take another picture")
        return self._shaped(self.data.view("<u2"), (self.height, self.width))

    @property
    def depth(self) -> NDArray[np.float32]:
        """Depth, float32[height, width], metres along the camera's axis: made anew by each call.

        Raises:
          InvalidArgument: It is no depth.
          BrokenPeer: The sizes do not fit the data.
        """
        return self.depth_codes * np.float32(self.depth_scale)

    @property
    def encoded(self) -> bytes:
        """The bytes of a PNG or JPEG file, to be written or decoded.

        Raises:
          InvalidArgument: It is no such file; `pixels` or `depth` has it.
        """
        self._expect("encoded", "png", "jpeg")
        return self.data.tobytes()

    def _expect(self, what: str, *formats: str) -> None:
        if self.format not in formats:
            raise InvalidArgument(
                f"{what}: expected an image of format {' or '.join(formats)}, found {self.format!r}; colour is in "
                "pixels, depth in depth, a file in encoded"
            )

    def _shaped(self, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        try:
            return array.reshape(shape)
        except ValueError as error:
            raise BrokenPeer(
                f"expected an image of {shape}, found {array.size} numbers; take another picture"
            ) from error


def image_of(values: dict[str, Any]) -> Image:
    """Makes an image of a stream's item.

    Args:
      values: Fields of the schema's ImageFrame.

    Returns:
      The image.
    """
    return Image(**values)


def named_image_of(values: dict[str, Any]) -> Image:
    """Makes an image of an answer.

    Args:
      values: Fields of the schema's NamedImageFrame.

    Returns:
      The image.

    Raises:
      BrokenPeer: There is none.
    """
    if values["frame"] is None:
        raise BrokenPeer("expected a picture in the engine's answer, found none; reconnect(), or close()")
    return image_of({**values["frame"], "name": values["name"]})
