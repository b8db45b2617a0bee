"""`Scene`: the entities of an environment, and how simulated time runs."""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem._native import MethodId
from tandem.arguments import flag, id_or_name, integer, member, shown
from tandem.arguments.arrays import finite, finite_number
from tandem.errors import InvalidArgument, Unsupported
from tandem.services.caller import Service


class SimulationMode(enum.IntEnum):
    """How simulated time relates to the wall clock's.

    REALTIME: at its pace, whether or not actions come. DETERMINISTIC: a fixed time for each step, independent of it.
    FAST: as fast as the machine can.
    """

    REALTIME = 0
    DETERMINISTIC = 1
    FAST = 2


@dataclass(frozen=True)
class SceneInfo:
    """What is being simulated; `scene_path` is the model's file on the engine's machine, "": no file."""

    scene_name: str
    scene_path: str
    entity_count: int


@dataclass(frozen=True, eq=False)
class Transform:
    """Where an entity is, in world coordinates, z up; None: unknown.

    `position` is float32[3], metres; `rotation` a unit quaternion, float32[4]: x, y, z, and the real part w last
    (MuJoCo: first); `scale` float32[3], factors along its own axes, 1: as modelled.
    """

    position: NDArray[np.float32] | None
    rotation: NDArray[np.float32] | None
    scale: NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class Entity:
    """A body, geom, camera or light.

    Attributes:
      id: Its number, from 1; the same in every environment, for as long as the engine runs.
      transform: None unless requested.
      components: What it consists of, such as "body" or "camera"; empty unless requested.
    """

    id: int
    name: str
    transform: Transform | None
    components: tuple[str, ...]


class Scene(Service):
    """Reads and moves the entities of the environments, and controls simulated time; `client.scene` is one."""

    def info(self, *, timeout: float | None = None) -> SceneInfo:
        """Returns what is being simulated."""
        return SceneInfo(**self._caller.call(MethodId.GetSceneInfo, timeout))

    def entities(
        self, *, env_id: int = 0, transforms: bool = False, components: bool = False, timeout: float | None = None
    ) -> tuple[Entity, ...]:
        """Lists the entities of an environment, on request with where each is, and what it consists of."""
        values = self._caller.call(
            MethodId.ListEntities,
            timeout,
            env_id=self._caller.env_id(env_id),
            include_transforms=flag("transforms", transforms),
            include_components=flag("components", components),
        )
        return tuple(_entity(each) for each in values["entities"])

    def entity(self, which: int | str, *, env_id: int = 0, timeout: float | None = None) -> Entity:
        """Returns the entity of this id or name, with transform and components; InvalidArgument: there is none."""
        values = self._caller.call(
            MethodId.GetEntity,
            timeout,
            env_id=self._caller.env_id(env_id),
            **id_or_name("which", which, "client.scene.entities()"),
        )
        if not values["found"] or values["entity"] is None:
            raise InvalidArgument(
                f"which: expected an entity's id or name, found {shown(which)}; client.scene.entities() lists them"
            )
        return _entity(values["entity"])

    def set_transform(
        self,
        which: int | str | Entity,
        *,
        position: ArrayLike | None = None,
        rotation: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        env_id: int = 0,
        timeout: float | None = None,
    ) -> None:
        """Moves an entity, at once.

        If its place is part of the environment's state, as with a free joint, the move lasts until the next reset; if
        it is part of the model, until the next move. `which` is an entity, its id or its name; a name costs a second
        call. `position`, `rotation` and `scale` are as in `Transform`; None: unchanged.

        Raises:
          InvalidArgument: No such entity or environment, nothing to change, or numbers that are not finite.
          Unsupported: This entity cannot be moved in this way; the text says why.
        """
        if isinstance(which, str):
            which = self.entity(which, env_id=env_id, timeout=timeout)
        number = which.id if isinstance(which, Entity) else which
        self._caller.call(
            MethodId.SetEntityTransform,
            timeout,
            id=integer("which", number, 1, 2**64 - 1, "; nothing was sent"),
            transform={
                "position": finite("position", position, 3),
                "rotation": finite("rotation", rotation, 4),
                "scale": finite("scale", scale, 3),
            },
            env_id=self._caller.env_id(env_id),
        )

    def simulation_mode(self, *, timeout: float | None = None) -> SimulationMode:
        """Returns how simulated time runs, in all environments of the engine."""
        return SimulationMode(self._caller.call(MethodId.GetSimulationMode, timeout)["mode"])

    def realtime_factor(self, *, timeout: float | None = None) -> float:
        """Returns the simulated seconds for each second of the wall clock in REALTIME; 1.0 in other modes."""
        return float(self._caller.call(MethodId.GetSimulationMode, timeout)["realtime_factor"]) or 1.0

    def set_simulation_mode(
        self, mode: SimulationMode, *, realtime_factor: float = 1.0, timeout: float | None = None
    ) -> SimulationMode:
        """Sets how simulated time runs, in all environments of the engine.

        `realtime_factor` is the simulated seconds for each second of the wall clock, 0.1 to 10, in REALTIME; an engine
        that cannot keep this pace steps as fast as it can. Other modes ignore it. Returns the mode from now on.

        Raises:
          InvalidArgument: No such mode, or another factor.
          Unsupported: The engine cannot run in this mode; the text says why. Or it knows no factor, as engines of other
            programs: it then runs at a factor of 1.
        """
        wanted = member("mode", mode, SimulationMode)
        factor = finite_number("realtime_factor", realtime_factor)
        answer = self._caller.call(MethodId.SetSimulationMode, timeout, mode=wanted, realtime_factor=factor)
        if wanted == SimulationMode.REALTIME and not np.isclose(answer["realtime_factor"] or 1.0, factor):
            raise Unsupported(f"realtime_factor: expected an engine that can run at {factor:g}, found one that cannot")
        return SimulationMode(answer["current_mode"])

    def paused(self, *, timeout: float | None = None) -> bool:
        """Returns whether the engine's time is stopped."""
        return bool(self._caller.call(MethodId.GetSimulationMode, timeout)["paused"])

    def pause(self, *, timeout: float | None = None) -> None:
        """Stops the engine's time: a client's step waits until `resume`, or raises `StepTimeout`.

        Ends a `single_step` that has steps left, also one whose caller timed out.
        """
        self._caller.call(MethodId.SetPaused, timeout, paused=True)

    def resume(self, *, timeout: float | None = None) -> None:
        """Continues the engine's time."""
        self._caller.call(MethodId.SetPaused, timeout, paused=False)

    def single_step(self, steps: int = 1, *, timeout: float | None = None) -> int:
        """Lets a paused engine do some steps, and waits for them. A step that was already sent is the first of them.

        Returns the steps done: fewer if `pause` or `resume` was called meanwhile. InvalidArgument: the engine is not
        paused, or does another single step, which `pause` ends.
        """
        count = integer("steps", steps, 1, 2**32 - 1, "; nothing was sent")
        return int(self._caller.call(MethodId.SingleStep, timeout, steps=count)["steps"])


def _entity(values: dict[str, Any]) -> Entity:
    transform = values["transform"]
    return Entity(
        values["id"], values["name"], None if transform is None else Transform(**transform), tuple(values["components"])
    )
