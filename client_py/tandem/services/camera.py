"""`Camera`: pictures from an environment's cameras."""

from dataclasses import dataclass
from typing import Any

from tandem.services.caller import Caller, fps_of, pixels_of
from tandem.services.images import CameraKind, Image, image_of, named_image_of
from tandem.services.methods import MethodId
from tandem.services.scene import id_or_name
from tandem.services.streams import Stream


@dataclass(frozen=True)
class CameraInfo:
    """One camera.

    Attributes:
      id: That of its entity.
      name: Its name.
    """

    id: int
    name: str


class Camera:
    """Takes pictures from the cameras of the environments; `client.camera` is one."""

    def __init__(self, caller: Caller) -> None:
        """Calls through `caller`."""
        self._caller = caller

    def list(self, *, env_id: int = 0, timeout: float | None = None) -> tuple[CameraInfo, ...]:
        """Lists an environment's cameras.

        Args:
          env_id: Which environment.
          timeout: Seconds; None: the client's.

        Returns:
          All of them.

        Raises:
          Unsupported: The engine takes no pictures, or the service is off.
          TandemError: As every call: docs/commands.md.
        """
        values = self._caller.call(MethodId.ListCameras, timeout, env_id=self._caller.env_id(env_id))
        return tuple(CameraInfo(**each) for each in values["cameras"])

    def frame(
        self,
        camera: int | str,
        *,
        kind: CameraKind = CameraKind.COLOR,
        width: int | None = None,
        height: int | None = None,
        format: str = "",
        env_id: int = 0,
        timeout: float | None = None,
    ) -> Image:
        """Takes one picture of an environment as it is now.

        Args:
          camera: Its id or name.
          kind: Colour or depth.
          width: Pixels; None: the camera's own.
          height: Pixels; None: the camera's own.
          format: "raw" or "png" for colour; "": the plain numbers.
          env_id: Which environment.
          timeout: Seconds; None: the client's.

        Returns:
          The picture.

        Raises:
          InvalidArgument: No such camera or environment, or a size or format that cannot be.
          Unsupported: The machine or the engine cannot draw.
          TandemError: As `list`.
        """
        return named_image_of(
            self._caller.call(
                MethodId.GetCameraFrame, timeout, **self._fields(camera, kind, width, height, format, env_id)
            )
        )

    def stream(
        self,
        camera: int | str,
        *,
        kind: CameraKind = CameraKind.COLOR,
        width: int | None = None,
        height: int | None = None,
        format: str = "",
        env_id: int = 0,
        fps: int | None = None,
        timeout: float | None = None,
    ) -> Stream[Image]:
        """Has the engine take pictures again and again.

        Args:
          camera: As for `frame`.
          kind: As for `frame`.
          width: As for `frame`.
          height: As for `frame`.
          format: As for `frame`.
          env_id: As for `frame`.
          fps: Pictures a second; None, or more than the engine allows: as many as it allows.
          timeout: Seconds to wait for each picture; None: the client's.

        Returns:
          A stream of pictures.

        Raises:
          TandemError: As `frame`; the engine's own come with the first picture.
        """
        fields = self._fields(camera, kind, width, height, format, env_id)
        return self._caller.stream(MethodId.StreamCamera, timeout, image_of, target_fps=fps_of(fps), **fields)

    def _fields(
        self, camera: int | str, kind: CameraKind, width: int | None, height: int | None, format: str, env_id: int
    ) -> dict[str, Any]:
        return {
            **id_or_name("camera", camera),
            "kind": kind,
            "width": pixels_of("width", width),
            "height": pixels_of("height", height),
            "format": format,
            "env_id": self._caller.env_id(env_id),
        }
