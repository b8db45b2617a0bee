"""`Viewport`: pictures as a person at the engine would see them."""

from dataclasses import dataclass
from typing import Any

from tandem.services.methods import MethodId
from tandem.services.pictures import Pictures


@dataclass(frozen=True)
class ViewportStreamConfig:
    """What a viewport's stream gives.

    Attributes:
      streaming: Whether it runs.
      viewport_name: Of which viewport.
      fps: Pictures a second.
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
    """Which viewports there are.

    Attributes:
      names: Of all of them.
      current: Of this client's stream that was started last of those that run; None: none runs.
    """

    names: tuple[str, ...]
    current: ViewportStreamConfig | None


class Viewport(Pictures):
    """Takes pictures of the environments as a whole; `client.viewport` is one."""

    _FRAME = MethodId.GetViewportFrame
    _STREAM = MethodId.StreamViewport

    def info(self, *, env_id: int = 0, timeout: float | None = None) -> ViewportInfo:
        """Asks which viewports there are.

        Args:
          env_id: Of which environment.
          timeout: Seconds; None: the client's.

        Returns:
          Their names, and what is streamed.

        Raises:
          Unsupported: The engine has none, or the service is off.
          TandemError: As every call: docs/commands.md.
        """
        values = self._caller.call(MethodId.GetViewportInfo, timeout, env_id=self._caller.env_id(env_id))
        config = values["current_config"]
        current = None if config is None else ViewportStreamConfig(**config)
        return ViewportInfo(tuple(values["available_viewports"]), current)

    def _source(self, which: int | str) -> dict[str, Any]:
        return {"viewport_name": which}
