"""`Image`: an image that an engine rendered."""

import enum
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem._native import NativeImage
from tandem.errors import BrokenPeer, InvalidArgument
from tandem.services.caller import part


class CameraKind(enum.IntEnum):
    """What the pixels of an image hold: colours, or distances from the camera."""

    COLOR = 0
    DEPTH = 1


@dataclass(frozen=True, eq=False)
class Image:
    """An image in the format in which the engine sent it.

    `format` determines which property gives the content: "raw": `pixels`; "gray16": `depth` or `depth_codes`; "png" and
    "jpeg": `encoded`.

    Attributes:
      data: uint8[n], the bytes as received, in memory of its own. Or, if the engine has `--image_slot_bytes`, in a slot
        of the region: without a copy, valid until the client closes or reconnects. An engine has two slots for each
        client; while arrays of two images exist, further images have memory of their own.
      channels: 3: red, green, blue; 4: red, green, blue, alpha; 1: depth. `width` and `height` are pixels.
      depth_scale: Metres per unit of `depth_codes`; 0: the image has no depth.
      name: Name of the camera or viewport.
      frame_seq: Number of the exchange whose state the image shows.
      timestamp_ms: Wall-clock time in milliseconds since the Unix epoch.
      frame_number: The image's number in its stream, from 1; 0: the image is not of a stream.
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
    def intact(self) -> bool:
        """Whether `data` is still this image: False if it was in a slot, and the slot's next client got an image.

        After the client's `close` or `reconnect`, copy `data` first, then read `intact`.
        """
        slot = self.data.base
        return not isinstance(slot, NativeImage) or slot.intact

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """Colours: uint8[height, width, channels], top row first; a view of `data`.

        Raises:
          InvalidArgument: The format is not "raw"; use `depth` or `encoded`.
          BrokenPeer: The data is not of that shape.
        """
        self._expect("pixels", "raw")
        return self._shaped(self.data, (self.height, self.width, self.channels))

    @property
    def depth_codes(self) -> NDArray[np.uint16]:
        """Depth: uint16[height, width], in units of `depth_scale` metres; a view of `data`.

        Raises:
          InvalidArgument: The format is not "gray16".
          BrokenPeer: The data is not of that shape.
        """
        self._expect("depth", "gray16")
        if self.data.size % 2:
            raise BrokenPeer(f"expected two bytes for each pixel, found {self.data.size} bytes; draw another image")
        return self._shaped(self.data.view("<u2"), (self.height, self.width))

    @property
    def depth(self) -> NDArray[np.float32]:
        """Depth: float32[height, width], in metres along the camera's axis; a new array at each access.

        Raises:
          TandemError: The errors of `depth_codes`.
        """
        return self.depth_codes * np.float32(self.depth_scale)

    @property
    def encoded(self) -> bytes:
        """The bytes of a PNG or JPEG file.

        Raises:
          InvalidArgument: The format is neither "png" nor "jpeg"; use `pixels` or `depth`.
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
            raise BrokenPeer(f"expected an image of {shape}, found {array.size} numbers; draw another image") from error


def image_of(values: dict[str, Any]) -> Image:
    """Makes an image from an ImageFrame of the schema, the item of a stream."""
    return Image(**{field.name: values[field.name] for field in fields(Image)})


def named_image_of(values: dict[str, Any]) -> Image:
    """Makes an image from a NamedImageFrame of the schema, an answer; BrokenPeer if the answer has no image."""
    return image_of({**part(values, "frame", "an image"), "name": values["name"]})
