"""`Viewport`: images of whole environments."""

from dataclasses import dataclass
from typing import Any

from tandem._native import MethodId
from tandem.arguments import text
from tandem.services.image_service import ImageService


@dataclass(frozen=True)
class ViewportStreamConfig:
    """A stream of a viewport.

    Attributes:
      streaming: Whether it runs.
      viewport_name: The viewport's name.
      fps: Images a second.
      width: Pixels.
      height: Pixels.
    """

    streaming: bool
    viewport_name: str
    fps: int
    width: int
    height: int


@dataclass(frozen=True)
class ViewportInfo:
    """The viewports of an environment.

    Attributes:
      names: Their names.
      current: Of this client's running streams, the one that was started last; None: no stream runs.
    """

    names: tuple[str, ...]
    current: ViewportStreamConfig | None


class Viewport(ImageService):
    """Draws images of whole environments; `client.viewport` is one.

    `timeout` is the time to wait for the answer in seconds; None: the client's. Every method raises Unsupported if the
    service is off or the engine lacks it, and the errors that docs/commands.md lists.
    """

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
