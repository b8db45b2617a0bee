"""`ImageService`: what the services camera and viewport share."""

from typing import Any, ClassVar

from tandem._native import MethodId
from tandem.arguments import member, or_zero
from tandem.services.caller import Service
from tandem.services.images import CameraKind, Image, image_of, named_image_of
from tandem.services.streams import Stream


class ImageService(Service):
    """Draws images, one at a time or as a stream; `Camera` and `Viewport` name their sources."""

    _FRAME: ClassVar[MethodId]
    _STREAM: ClassVar[MethodId]

    def frame(
        self,
        which: int | str = "",
        *,
        kind: CameraKind = CameraKind.COLOR,
        width: int | None = None,
        height: int | None = None,
        format: str = "",
        env_id: int = 0,
        timeout: float | None = None,
    ) -> Image:
        """Draws one image of an environment as it is now.

        `which` is a camera's id or name, which `camera` needs; or a viewport's name, "": the first. `width` and
        `height` are pixels, None: the camera's or viewport's own. `format` is "raw", "png" or "jpeg" for colour,
        "gray16" for depth; "": "raw" or "gray16".

        Raises:
          InvalidArgument: No such camera, viewport or environment, or an invalid size or format.
          Unsupported: The machine or the engine cannot draw, or the service is off.
        """
        return named_image_of(
            self._caller.call(self._FRAME, timeout, **self._fields(which, kind, width, height, format, env_id))
        )

    def stream(
        self,
        which: int | str = "",
        *,
        kind: CameraKind = CameraKind.COLOR,
        width: int | None = None,
        height: int | None = None,
        format: str = "",
        env_id: int = 0,
        fps: int | None = None,
        timeout: float | None = None,
    ) -> Stream[Image]:
        """Opens a stream of images, each as `frame` draws it."""
        fields = self._fields(which, kind, width, height, format, env_id)
        return self._caller.stream(self._STREAM, timeout, image_of, target_fps=or_zero("fps", fps), **fields)

    def _source(self, which: int | str) -> dict[str, Any]:
        """Returns the part of a request that names the drawn environment or camera."""
        raise NotImplementedError

    def _fields(
        self, which: int | str, kind: CameraKind, width: int | None, height: int | None, format: str, env_id: int
    ) -> dict[str, Any]:
        return {
            **self._source(which),
            "kind": member("kind", kind, CameraKind),
            "width": or_zero("width", width),
            "height": or_zero("height", height),
            "format": format,
            "env_id": self._caller.env_id(env_id),
            "to_slot": True,
        }
