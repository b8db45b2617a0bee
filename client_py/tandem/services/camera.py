"""`Camera`: images from the cameras of an environment."""

from dataclasses import dataclass
from typing import Any

from tandem._native import MethodId
from tandem.arguments import id_or_name
from tandem.services.image_service import ImageService


@dataclass(frozen=True)
class CameraInfo:
    """One camera.

    Attributes:
      id: The id of its entity.
      name: Its name.
    """

    id: int
    name: str


class Camera(ImageService):
    """Draws images from the cameras of the environments; `client.camera` is one."""

    _FRAME = MethodId.GetCameraFrame
    _STREAM = MethodId.StreamCamera

    def list(self, *, env_id: int = 0, timeout: float | None = None) -> tuple[CameraInfo, ...]:
        """Lists the cameras of an environment.

        Args:
          env_id: The environment.
          timeout: Seconds to wait for the answer; None: the client's.

        Returns:
          All of its cameras.

        Raises:
          Unsupported: The engine draws no images, or the service is off.
          TandemError: See docs/commands.md.
        """
        values = self._caller.call(MethodId.ListCameras, timeout, env_id=self._caller.env_id(env_id))
        return tuple(CameraInfo(**each) for each in values["cameras"])

    def _source(self, which: int | str) -> dict[str, Any]:
        return id_or_name("which", which, "client.camera.list()")
