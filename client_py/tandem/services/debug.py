"""`Debug`: lines and arrows in the images of an environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tandem._native import MethodId
from tandem.arguments import shown
from tandem.arguments.arrays import finite, finite_number
from tandem.errors import InvalidArgument
from tandem.services.caller import Service

_Mark = TypeVar("_Mark")


@dataclass(frozen=True, eq=False)
class DebugLine:
    """A line between two points, float[3], metres in world coordinates.

    `color` is red, green, blue and, if four, alpha, from 0 to 1; None: the engine's choice.
    """

    start: ArrayLike
    end: ArrayLike
    color: Sequence[float] | None = None


@dataclass(frozen=True, eq=False)
class DebugArrow:
    """An arrow from `origin`, float[3], metres in world coordinates.

    `direction` is float[3], metres, from its tail to its tip; `color` as for `DebugLine`; `scale` a factor on its
    length.
    """

    origin: ArrayLike
    direction: ArrayLike
    color: Sequence[float] | None = None
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class DebugVelocityCommand:
    """The target velocity of a robot, drawn at the robot's position `origin`, float[3], metres in world coordinates.

    `lin_vel_x` is metres a second forward, `lin_vel_y` to the left, `ang_vel_z` radians a second to the left; `scale`
    metres drawn for each metre a second.
    """

    origin: ArrayLike
    lin_vel_x: float
    lin_vel_y: float
    ang_vel_z: float
    scale: float = 1.0


class Debug(Service):
    """Draws into the images of the environments, until `clear`; `client.debug` is one."""

    def draw(
        self,
        *,
        lines: Sequence[DebugLine] = (),
        arrows: Sequence[DebugArrow] = (),
        velocity_command: DebugVelocityCommand | None = None,
        clear_previous: bool = False,
        env_id: int = 0,
        timeout: float | None = None,
    ) -> None:
        """Draws all of these at once.

        They appear in the images of the environment `env_id`; `clear_previous` removes earlier marks first.

        Raises:
          InvalidArgument: Marks of another type, invalid numbers, or no such environment; nothing was drawn.
          EngineFailed: The engine failed to draw.
          Unsupported: The engine draws no images, or the service is off.
        """
        self._caller.call(
            MethodId.Draw,
            timeout,
            lines=[
                {
                    "start": finite("start", line.start, 3),
                    "end": finite("end", line.end, 3),
                    "color": _color(line.color),
                }
                for line in _all_of("lines", lines, DebugLine)
            ],
            arrows=[
                {
                    "origin": finite("origin", arrow.origin, 3),
                    "direction": finite("direction", arrow.direction, 3),
                    "color": _color(arrow.color),
                    "scale": finite_number("scale", arrow.scale),
                }
                for arrow in _all_of("arrows", arrows, DebugArrow)
            ],
            velocity_command=None if velocity_command is None else _velocity(velocity_command),
            clear_previous=clear_previous,
            env_id=self._caller.env_id(env_id),
        )

    def line(
        self,
        start: ArrayLike,
        end: ArrayLike,
        *,
        color: Sequence[float] | None = None,
        env_id: int = 0,
        timeout: float | None = None,
    ) -> None:
        """Draws one line, as `draw` does; the arguments are those of `DebugLine`."""
        self.draw(lines=[DebugLine(start, end, color)], env_id=env_id, timeout=timeout)

    def arrow(
        self,
        origin: ArrayLike,
        direction: ArrayLike,
        *,
        color: Sequence[float] | None = None,
        scale: float = 1.0,
        env_id: int = 0,
        timeout: float | None = None,
    ) -> None:
        """Draws one arrow, as `draw` does; the arguments are those of `DebugArrow`."""
        self.draw(arrows=[DebugArrow(origin, direction, color, scale)], env_id=env_id, timeout=timeout)

    def velocity_command(
        self,
        origin: ArrayLike,
        *,
        lin_vel_x: float = 0.0,
        lin_vel_y: float = 0.0,
        ang_vel_z: float = 0.0,
        scale: float = 1.0,
        env_id: int = 0,
        timeout: float | None = None,
    ) -> None:
        """Draws one velocity command, as `draw` does; the arguments are those of `DebugVelocityCommand`."""
        command = DebugVelocityCommand(origin, lin_vel_x, lin_vel_y, ang_vel_z, scale)
        self.draw(velocity_command=command, env_id=env_id, timeout=timeout)

    def clear(self, *, env_id: int = 0, timeout: float | None = None) -> None:
        """Removes all marks of an environment."""
        self.draw(clear_previous=True, env_id=env_id, timeout=timeout)


def _all_of(name: str, marks: Sequence[_Mark], kind: type[_Mark]) -> Sequence[_Mark]:
    if not isinstance(marks, Sequence) or not all(isinstance(mark, kind) for mark in marks):
        raise InvalidArgument(
            f"{name}: expected a list of tandem.services.{kind.__name__}, found {shown(marks)}; nothing was sent"
        )
    return marks


def _color(color: Sequence[float] | None) -> dict[str, Any] | None:
    if color is None:
        return None
    try:
        parts = np.asarray(color, dtype=object)
        numbers = finite("color", [*color, 1.0] if parts.shape == (3,) else color, 4)
    except (ValueError, InvalidArgument):
        numbers = None
    if numbers is None or numbers.min() < 0 or numbers.max() > 1:
        raise InvalidArgument(f"color: expected 3 or 4 numbers from 0 to 1, found {shown(color)}; nothing was sent")
    return dict(zip("rgba", numbers.tolist(), strict=True))


def _velocity(command: DebugVelocityCommand) -> dict[str, Any]:
    if not isinstance(command, DebugVelocityCommand):
        raise InvalidArgument(
            f"velocity_command: expected a tandem.services.DebugVelocityCommand, found {shown(command)}; "
            "nothing was sent"
        )
    numbers = {name: getattr(command, name) for name in ("lin_vel_x", "lin_vel_y", "ang_vel_z", "scale")}
    return {"origin": finite("origin", command.origin, 3)} | {
        name: finite_number(name, value) for name, value in numbers.items()
    }
