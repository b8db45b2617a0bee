"""`Viewport`: images of whole environments."""

from dataclasses import dataclass
from typing import Any

from tandem._native import MethodId
from tandem.arguments import text
from tandem.services.image_service import ImageService


@dataclass(frozen=True)
class ViewportStreamConfig:
    """A stream of a viewport: whether it runs, its images a second, their pixels."""

    streaming: bool
    viewport_name: str
    fps: int
    width: int
    height: int


@dataclass(frozen=True)
class ViewportInfo:
    """The viewports of an environment; `current`: this client's running stream that was started last, or None."""

    names: tuple[str, ...]
    current: ViewportStreamConfig | None


class Viewport(ImageService):
    """Draws images of whole environments; `client.viewport` is one."""

    _FRAME = MethodId.GetViewportFrame
    _STREAM = MethodId.StreamViewport

    def info(self, *, env_id: int = 0, timeout: float | None = None) -> ViewportInfo:
        """Returns the names of an environment's viewports, and the stream that runs."""
        values = self._caller.call(MethodId.GetViewportInfo, timeout, env_id=self._caller.env_id(env_id))
        config = values["current_config"]
        current = None if config is None else ViewportStreamConfig(**config)
        return ViewportInfo(tuple(values["available_viewports"]), current)

    def _source(self, which: int | str) -> dict[str, Any]:
        return {"viewport_name": text("which", which, "; nothing was sent")}
