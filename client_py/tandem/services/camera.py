"""`Camera`: images from the cameras of an environment."""

from dataclasses import dataclass
from typing import Any

from tandem._native import MethodId
from tandem.arguments import id_or_name
from tandem.services.image_service import ImageService


@dataclass(frozen=True)
class CameraInfo:
    """One camera; its id is its entity's."""

    id: int
    name: str


class Camera(ImageService):
    """Draws images from the cameras of the environments; `client.camera` is one."""

    _FRAME = MethodId.GetCameraFrame
    _STREAM = MethodId.StreamCamera

    def list(self, *, env_id: int = 0, timeout: float | None = None) -> tuple[CameraInfo, ...]:
        """Returns all cameras of an environment."""
        values = self._caller.call(MethodId.ListCameras, timeout, env_id=self._caller.env_id(env_id))
        return tuple(CameraInfo(**each) for each in values["cameras"])

    def _source(self, which: int | str) -> dict[str, Any]:
        return id_or_name("which", which, "client.camera.list()")
