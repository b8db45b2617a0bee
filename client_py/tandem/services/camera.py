"""`Camera`: pictures from an environment's cameras."""

from dataclasses import dataclass
from typing import Any

from tandem.arguments import id_or_name
from tandem.services.methods import MethodId
from tandem.services.pictures import Pictures


@dataclass(frozen=True)
class CameraInfo:
    """One camera.

    Attributes:
      id: That of its entity.
      name: Its name.
    """

    id: int
    name: str


class Camera(Pictures):
    """Takes pictures from the cameras of the environments; `client.camera` is one."""

    _FRAME = MethodId.GetCameraFrame
    _STREAM = MethodId.StreamCamera

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

    def _source(self, which: int | str) -> dict[str, Any]:
        return id_or_name("which", which, "client.camera.list()")
