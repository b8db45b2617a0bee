"""`Debug`: lines and arrows in the pictures of an environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tandem.arguments import finite, finite_number, shown
from tandem.errors import InvalidArgument
from tandem.services.caller import Caller
from tandem.services.methods import MethodId

_Mark = TypeVar("_Mark")


@dataclass(frozen=True, eq=False)
class DebugLine:
    """A line between two points.

    Attributes:
      start: float[3], metres in world coordinates.
      end: Likewise.
      color: Red, green, blue and, if four, alpha, from 0 to 1; None: the engine's choice.
    """

    start: ArrayLike
    end: ArrayLike
    color: Sequence[float] | None = None


@dataclass(frozen=True, eq=False)
class DebugArrow:
    """An arrow.

    Attributes:
      origin: float[3], metres in world coordinates.
      direction: float[3]: where to and, in metres, how far.
      color: As for `DebugLine`.
      scale: Factor on its length.
    """

    origin: ArrayLike
    direction: ArrayLike
    color: Sequence[float] | None = None
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class DebugVelocityCommand:
    """A velocity that a robot is told to have, drawn at the robot.

    Attributes:
      origin: The robot's position, float[3], metres in world coordinates.
      lin_vel_x: Metres a second, forward.
      lin_vel_y: Metres a second, to the left.
      ang_vel_z: Radians a second, to the left.
      scale: Metres drawn for each metre a second.
    """

    origin: ArrayLike
    lin_vel_x: float
    lin_vel_y: float
    ang_vel_z: float
    scale: float = 1.0


class Debug:
    """Draws into the pictures of the environments, until cleared; `client.debug` is one."""

    def __init__(self, caller: Caller) -> None:
        """Calls through `caller`."""
        self._caller = caller

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

        Args:
          lines: Lines.
          arrows: Arrows.
          velocity_command: A velocity command.
          clear_previous: Take away what was drawn before.
          env_id: Into the pictures of which environment.
          timeout: Seconds; None: the client's.

        Raises:
          InvalidArgument: Marks of another type, numbers that cannot be, or no such environment; nothing was drawn.
          EngineFailed: The engine could not.
          Unsupported: The engine draws nothing, or the service is off.
          TandemError: As every call: docs/commands.md.
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
        """Draws one line more.

        Args:
          start: As `DebugLine.start`.
          end: As `DebugLine.end`.
          color: As `DebugLine.color`.
          env_id: As for `draw`.
          timeout: As for `draw`.

        Raises:
          TandemError: As `draw`.
        """
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
        """Draws one arrow more.

        Args:
          origin: As `DebugArrow.origin`.
          direction: As `DebugArrow.direction`.
          color: As `DebugArrow.color`.
          scale: As `DebugArrow.scale`.
          env_id: As for `draw`.
          timeout: As for `draw`.

        Raises:
          TandemError: As `draw`.
        """
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
        """Draws the velocity that a robot is told to have.

        Args:
          origin: As `DebugVelocityCommand.origin`.
          lin_vel_x: As `DebugVelocityCommand.lin_vel_x`.
          lin_vel_y: As `DebugVelocityCommand.lin_vel_y`.
          ang_vel_z: As `DebugVelocityCommand.ang_vel_z`.
          scale: As `DebugVelocityCommand.scale`.
          env_id: As for `draw`.
          timeout: As for `draw`.

        Raises:
          TandemError: As `draw`.
        """
        command = DebugVelocityCommand(origin, lin_vel_x, lin_vel_y, ang_vel_z, scale)
        self.draw(velocity_command=command, env_id=env_id, timeout=timeout)

    def clear(self, *, env_id: int = 0, timeout: float | None = None) -> None:
        """Takes away what was drawn.

        Args:
          env_id: From the pictures of which environment.
          timeout: As for `draw`.

        Raises:
          TandemError: As `draw`.
        """
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
