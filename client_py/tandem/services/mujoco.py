"""`Mujoco`: joints and actuators of the environments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem._native import MethodId
from tandem.arguments import flag, integer, or_zero, shown, text
from tandem.arguments.arrays import finite, finite_number
from tandem.services.caller import EnvIds, Service, part
from tandem.services.streams import Stream


@dataclass(frozen=True)
class MujocoInfo:
    """A model's sizes, and the names of its joints and nu actuators, in MuJoCo's order; "": without a name.

    `JointState.positions` has nq numbers, `JointState.velocities` nv.
    """

    nq: int
    nv: int
    nu: int
    joint_names: tuple[str, ...]
    actuator_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class JointState:
    """Joints of one environment at one moment, in MuJoCo's order, in arrays that are the caller's own.

    `positions` is MuJoCo's qpos, float32[nq], metres and radians; `velocities` its qvel, float32[nv], the same per
    second.
    """

    env_id: int
    positions: NDArray[np.float32]
    velocities: NDArray[np.float32]


@dataclass(frozen=True)
class ControlsSent:
    """How many actuators `send_control` set in each environment, and the names of those under another control."""

    actuators_written: int
    rejected_actuators: tuple[str, ...]


class Mujoco(Service):
    """Reads joints and sets controls of an engine that simulates with MuJoCo; `client.mujoco` is one."""

    def info(self, *, timeout: float | None = None) -> MujocoInfo:
        """Returns the model's sizes and names, the same for all environments."""
        values = self._caller.call(MethodId.GetMujocoInfo, timeout)
        return MujocoInfo(
            values["nq"], values["nv"], values["nu"], tuple(values["joint_names"]), tuple(values["actuator_names"])
        )

    @overload
    def joint_state(self, env_ids: None = None, *, timeout: float | None = None) -> JointState: ...
    @overload
    def joint_state(self, env_ids: EnvIds, *, timeout: float | None = None) -> tuple[JointState, ...]: ...
    def joint_state(
        self, env_ids: EnvIds | None = None, *, timeout: float | None = None
    ) -> JointState | tuple[JointState, ...]:
        """Returns joint positions and velocities; with `env_ids` one state for each, all of the same moment."""
        values = self._caller.call(MethodId.GetJointState, timeout, env_ids=self._caller.env_ids(env_ids))
        return _joint_state(values) if env_ids is None else _joint_states(values)

    @overload
    def stream_joint_state(
        self, env_ids: None = None, *, fps: int | None = None, timeout: float | None = None
    ) -> Stream[JointState]: ...
    @overload
    def stream_joint_state(
        self, env_ids: EnvIds, *, fps: int | None = None, timeout: float | None = None
    ) -> Stream[tuple[JointState, ...]]: ...
    def stream_joint_state(
        self, env_ids: EnvIds | None = None, *, fps: int | None = None, timeout: float | None = None
    ) -> Stream[JointState] | Stream[tuple[JointState, ...]]:
        """Opens a stream of what `joint_state` returns."""
        fields = {"env_ids": self._caller.env_ids(env_ids), "target_fps": or_zero("fps", fps)}
        if env_ids is None:
            return self._caller.stream(MethodId.StreamJointState, timeout, _joint_state, **fields)
        return self._caller.stream(MethodId.StreamJointState, timeout, _joint_states, **fields)

    def send_control(
        self,
        controls: ArrayLike | Mapping[str, float] | Mapping[int, float],
        *,
        env_ids: EnvIds | None = None,
        wait_for_next_step: bool = False,
        clamp: bool = True,
        timeout: float | None = None,
    ) -> ControlsSent:
        """Sets actuators for the next step; they replace the numbers of its action.

        `controls` is float[n] for the first n actuators, n from 1; or a mapping from actuators' names, or their numbers
        from 0, to values; in the actuators' own units. `clamp` clamps them to the actuators' ranges. Each of `env_ids`
        gets the same. `wait_for_next_step` waits until a step has begun with them: another thread has to step
        meanwhile, otherwise this call raises `StepTimeout`. Returns how many were set, and which were not.

        Raises:
          InvalidArgument: No controls, more than there are actuators, one that is no finite number, or no such actuator
            or environment; nothing was set.
        """
        values = self._caller.call(
            MethodId.SendControl,
            timeout,
            env_ids=self._caller.env_ids(env_ids),
            wait_for_next_step=wait_for_next_step,
            skip_range_clamp=not flag("clamp", clamp),
            **_controls(controls),
        )
        return ControlsSent(values["actuators_written"], tuple(values["rejected_actuators"]))


def _controls(controls: ArrayLike | Mapping[str, float] | Mapping[int, float]) -> dict[str, Any]:
    if not isinstance(controls, Mapping):
        return {"bulk": finite("controls", controls)}
    named: list[dict[str, Any]] = []
    indexed: list[dict[str, Any]] = []
    for key, value in controls.items():
        number = finite_number(f"controls[{shown(key)}]", value)
        if isinstance(key, str):
            name = text("controls: an actuator's name", key, "; nothing was sent")
            named.append({"actuator_name": name, "value": number})
        else:
            index = integer("controls: an actuator's number", key, 0, 2**32 - 1, "; nothing was sent")
            indexed.append({"actuator_index": index, "value": number})
    return {"named": named, "indexed": indexed}


def _joint_state(values: dict[str, Any]) -> JointState:
    return _state(part(values, "state", "a joint state"))


def _joint_states(values: dict[str, Any]) -> tuple[JointState, ...]:
    return tuple(_state(state) for state in values["states"])


def _state(values: dict[str, Any]) -> JointState:
    return JointState(values["env_id"], values["positions"], values["velocities"])
