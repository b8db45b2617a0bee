"""`Viewport`: pictures as a person at the engine would see them."""

from dataclasses import dataclass
from typing import Any

from tandem.services.caller import Caller, fps_of, pixels_of
from tandem.services.images import CameraKind, Image, image_of, named_image_of
from tandem.services.methods import MethodId
from tandem.services.streams import Stream


@dataclass(frozen=True)
class ViewportStreamConfig:
    """What a viewport's stream gives.

    Attributes:
      streaming: Whether there is one.
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
      current: Of the stream that was started last; None: none was.
    """

    names: tuple[str, ...]
    current: ViewportStreamConfig | None


class Viewport:
    """Takes pictures of the environments as a whole; `client.viewport` is one."""

    def __init__(self, caller: Caller) -> None:
        """Calls through `caller`."""
        self._caller = caller

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

    def frame(
        self,
        name: str = "",
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
          name: The viewport's; "": the first.
          kind: Colour or depth.
          width: Pixels; None: the viewport's own.
          height: Pixels; None: the viewport's own.
          format: "raw" or "png" for colour; "": the plain numbers.
          env_id: Which environment.
          timeout: Seconds; None: the client's.

        Returns:
          The picture.

        Raises:
          InvalidArgument: No such viewport or environment, or a size or format that cannot be.
          Unsupported: The machine or the engine cannot draw.
          TandemError: As `info`.
        """
        return named_image_of(
            self._caller.call(
                MethodId.GetViewportFrame, timeout, **self._fields(name, kind, width, height, format, env_id)
            )
        )

    def stream(
        self,
        name: str = "",
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
          name: As for `frame`.
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
        fields = self._fields(name, kind, width, height, format, env_id)
        return self._caller.stream(MethodId.StreamViewport, timeout, image_of, target_fps=fps_of(fps), **fields)

    def _fields(
        self, name: str, kind: CameraKind, width: int | None, height: int | None, format: str, env_id: int
    ) -> dict[str, Any]:
        return {
            "viewport_name": name,
            "kind": kind,
            "width": pixels_of("width", width),
            "height": pixels_of("height", height),
            "format": format,
            "env_id": self._caller.env_id(env_id),
        }
