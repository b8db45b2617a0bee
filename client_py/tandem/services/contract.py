"""`SimulationContract`: domain randomisation, and the velocity commands of robots."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from tandem.arguments import shown
from tandem.errors import InvalidArgument

Range = tuple[float, float]


class UnusedContractFields(UserWarning):
    """Fields of a contract without effect on the engine's task; `fields` has their names."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        """Makes the warning."""
        super().__init__(
            f"expected only contract fields that affect this task, found {', '.join(fields)}, without effect on it; "
            "omit them"
        )
        self.fields = fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulationContract:
    """How environments differ from the task, from their next reset on.

    A range is (min, max): each environment draws its own number from it, uniformly, at each reset; None leaves the
    task's value. A noise is the standard deviation of a normal distribution around the task's value; 0: none. A
    contract replaces the contract before: `SimulationContract()` is the task without randomisation.

    Attributes:
      pose_position_noise: Metres, (x, y, z): of the initial position.
      pose_orientation_noise: Radians: of the initial orientation.
      joint_position_noise: Radians or metres, by the joint's kind: of the initial joint positions.
      joint_velocity_noise: The same per second: of the initial joint velocities.
      friction_range: Coefficient of sliding friction.
      restitution_range: Coefficient of restitution, 0 (no bounce) to 1.
      mass_scale_range: Factor on the bodies' masses.
      com_offset_range: Metres along each axis, added to the bodies' centres of mass.
      motor_strength_range: Factor on the motors' forces and torques.
      motor_offset_range: Added to the target positions of motors: radians or metres, by the joint's kind.
      push_interval_range: Seconds of simulated time from one push to the next.
      push_velocity_range: Metres a second: size of the velocity that a push adds.
      terrain_type: The terrain's name in the engine; "": the task's own.
      terrain_difficulty: 0 (easiest) to 1.
      vel_command_x_range: Metres a second: commanded forward velocity.
      vel_command_y_range: Metres a second: commanded velocity to the left.
      vel_command_yaw_range: Radians a second: commanded turn to the left.
      vel_command_resampling_time_range: Seconds of simulated time until another command is drawn.
      vel_command_standing_probability: From 0 to 1: probability that a drawn command is to stand still.

    >>> SimulationContract(mass_scale_range=(0.8, 1.2)).given()
    {'mass_scale_range': (0.8, 1.2)}
    """

    pose_position_noise: tuple[float, float, float] | None = None
    pose_orientation_noise: float = 0.0
    joint_position_noise: float = 0.0
    joint_velocity_noise: float = 0.0
    friction_range: Range | None = None
    restitution_range: Range | None = None
    mass_scale_range: Range | None = None
    com_offset_range: Range | None = None
    motor_strength_range: Range | None = None
    motor_offset_range: Range | None = None
    push_interval_range: Range | None = None
    push_velocity_range: Range | None = None
    terrain_type: str = ""
    terrain_difficulty: float = 0.0
    vel_command_x_range: Range | None = None
    vel_command_y_range: Range | None = None
    vel_command_yaw_range: Range | None = None
    vel_command_resampling_time_range: Range | None = None
    vel_command_standing_probability: float = 0.0

    def __post_init__(self) -> None:
        """Checks types and ranges, by InvalidArgument; the engine checks what its task supports."""
        for name, value in self.given().items():
            object.__setattr__(self, name, _checked(name, value))

    def given(self) -> dict[str, Any]:
        """Returns the fields that differ from the default, with their values."""
        return {
            field.name: value
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) is not None and not (isinstance(value, str) and value == "")
            if not (isinstance(value, int | float) and value == 0)
        }


Contracts = SimulationContract | Sequence[SimulationContract | None] | None


def expected_contract(name: str, value: object) -> SimulationContract:
    """Returns the value; InvalidArgument: it is no SimulationContract."""
    if isinstance(value, SimulationContract):
        return value
    raise InvalidArgument(f"{name}: expected a tandem.services.SimulationContract, found {shown(value)}")


def contracts_of(contract: Contracts, count: int) -> list[SimulationContract | None]:
    """Returns the contract of each of `count` environments; None: unchanged.

    `contract` is one for all, or a sequence with one for each. InvalidArgument: a wrong type, or another number.
    """
    if contract is None:
        return [None] * count
    if not isinstance(contract, Sequence) or isinstance(contract, str | bytes):
        return [expected_contract("contract", contract)] * count
    if len(contract) != count:
        raise InvalidArgument(
            f"contract: expected a tandem.services.SimulationContract, or {count} of them or None, one for each "
            f"environment, found {len(contract)}"
        )
    return [
        None if each is None else expected_contract(f"contract[{number}]", each) for number, each in enumerate(contract)
    ]


def _checked(name: str, value: Any) -> Any:
    if name == "terrain_type":
        if not isinstance(value, str):
            raise InvalidArgument(f"{name}: expected a text, found {shown(value)}")
        return value
    if name == "pose_position_noise":
        return _numbers(name, value, 3, "3 noises, 0 or more", lambda noises: min(noises) >= 0)
    if name.endswith("_range"):
        return _numbers(name, value, 2, "(min, max), finite, min <= max", lambda ends: ends[0] <= ends[1])
    if name in ("terrain_difficulty", "vel_command_standing_probability"):
        return _numbers(name, [value], 1, "a number from 0 to 1", lambda share: 0 <= share[0] <= 1)[0]
    return _numbers(name, [value], 1, "a finite number, 0 or more", lambda noise: noise[0] >= 0)[0]


def _numbers(name: str, value: Any, count: int, expected: str, good: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(each) for each in value) if isinstance(value, Sequence) or hasattr(value, "shape") else ()
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    if len(numbers) != count or not all(map(math.isfinite, numbers)) or not good(numbers) or isinstance(value, str):
        raise InvalidArgument(f"{name}: expected {expected}, found {shown(value)}")
    return numbers
