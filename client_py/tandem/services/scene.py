"""`Scene`: what is in an environment, and how simulated time runs."""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.arguments import finite, id_or_name, integer, member, shown
from tandem.errors import InvalidArgument
from tandem.services.caller import Caller
from tandem.services.methods import MethodId


class SimulationMode(enum.IntEnum):
    """How simulated time relates to the wall clock's.

    Attributes:
      REALTIME: At the wall clock's pace, whether or not actions come.
      DETERMINISTIC: A fixed time for each exchange, whatever the wall clock says.
      FAST: As fast as the machine can.
    """

    REALTIME = 0
    DETERMINISTIC = 1
    FAST = 2


@dataclass(frozen=True)
class SceneInfo:
    """What is being simulated.

    Attributes:
      scene_name: Its name.
      scene_path: The model's file on the engine's machine; "": there is none.
      entity_count: How many entities each environment has.
    """

    scene_name: str
    scene_path: str
    entity_count: int


@dataclass(frozen=True, eq=False)
class Transform:
    """Where something is, in world coordinates, z up.

    Attributes:
      position: float32[3], metres; None: not known.
      rotation: A unit quaternion, float32[4]: x, y, z, and its real part w last (MuJoCo: first); None: not known.
      scale: Factor along each of its own axes, float32[3], 1: as modelled; None: not known.
    """

    position: NDArray[np.float32] | None
    rotation: NDArray[np.float32] | None
    scale: NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class Entity:
    """A body, geom, camera or light.

    Attributes:
      id: Its number, from 1; the same in every environment, for as long as the engine runs.
      name: Its name.
      transform: Where it is; None unless asked for.
      components: What it is made of, such as "body" or "camera"; empty unless asked for.
    """

    id: int
    name: str
    transform: Transform | None
    components: tuple[str, ...]


class Scene:
    """Looks at and moves what is in the environments, and stops or paces their time; `client.scene` is one."""

    def __init__(self, caller: Caller) -> None:
        """Calls through `caller`."""
        self._caller = caller

    def info(self, *, timeout: float | None = None) -> SceneInfo:
        """Asks what is being simulated.

        Args:
          timeout: Seconds; None: the client's.

        Returns:
          Names and how many entities there are.

        Raises:
          Unsupported: The engine has no scene, or the service is off.
          TandemError: As every call: docs/commands.md.
        """
        return SceneInfo(**self._caller.call(MethodId.GetSceneInfo, timeout))

    def entities(
        self, *, env_id: int = 0, transforms: bool = False, components: bool = False, timeout: float | None = None
    ) -> tuple[Entity, ...]:
        """Lists the entities of an environment.

        Args:
          env_id: Which environment.
          transforms: Tell where each is.
          components: Tell what each is made of.
          timeout: Seconds; None: the client's.

        Returns:
          All of them.

        Raises:
          InvalidArgument: No such environment.
          TandemError: As `info`.
        """
        values = self._caller.call(
            MethodId.ListEntities,
            timeout,
            env_id=self._caller.env_id(env_id),
            include_transforms=transforms,
            include_components=components,
        )
        return tuple(_entity(each) for each in values["entities"])

    def entity(self, which: int | str, *, env_id: int = 0, timeout: float | None = None) -> Entity:
        """Asks for one entity, with all there is.

        Args:
          which: Its id or name.
          env_id: In which environment.
          timeout: Seconds; None: the client's.

        Returns:
          The entity.

        Raises:
          InvalidArgument: There is none.
          TandemError: As `info`.
        """
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

        Where its place is the environment's state, as of a body with a free joint, that is until the next reset; where
        it is the model's, until it is moved again.

        Args:
          which: It, its id or its name; a name costs another call.
          position: float[3], metres in world coordinates; None: as it is.
          rotation: A unit quaternion, float[4]: x, y, z, w (MuJoCo has w first); None: as it is.
          scale: float[3], factor along each of its own axes; None: as it is.
          env_id: In which environment.
          timeout: Seconds for each call; None: the client's.

        Raises:
          InvalidArgument: There is no such entity, or numbers that cannot be.
          Unsupported: It cannot be moved so; the text says why.
          TandemError: As `info`.
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
        """Asks how simulated time runs, of the whole engine.

        Args:
          timeout: Seconds; None: the client's.

        Returns:
          The mode.

        Raises:
          TandemError: As `info`.
        """
        return SimulationMode(self._caller.call(MethodId.GetSimulationMode, timeout)["mode"])

    def set_simulation_mode(self, mode: SimulationMode, *, timeout: float | None = None) -> SimulationMode:
        """Sets how simulated time runs, of the whole engine.

        Args:
          mode: How.
          timeout: Seconds; None: the client's.

        Returns:
          The mode from now on.

        Raises:
          InvalidArgument: No such mode.
          Unsupported: It cannot run so; the text says why.
          TandemError: As `info`.
        """
        wanted = member("mode", mode, SimulationMode)
        return SimulationMode(self._caller.call(MethodId.SetSimulationMode, timeout, mode=wanted)["current_mode"])

    def paused(self, *, timeout: float | None = None) -> bool:
        """Asks whether the engine's time is stopped.

        Args:
          timeout: Seconds; None: the client's.

        Returns:
          Whether it is.

        Raises:
          TandemError: As `info`.
        """
        return bool(self._caller.call(MethodId.GetSimulationMode, timeout)["paused"])

    def pause(self, *, timeout: float | None = None) -> None:
        """Stops the engine's time: a client's step waits until `resume`, or ends with `StepTimeout`.

        Ends what is left of a `single_step`, also of one that was given up.

        Args:
          timeout: Seconds; None: the client's.

        Raises:
          TandemError: As `info`.
        """
        self._caller.call(MethodId.SetPaused, timeout, paused=True)

    def resume(self, *, timeout: float | None = None) -> None:
        """Lets the engine's time run again.

        Args:
          timeout: Seconds; None: the client's.

        Raises:
          TandemError: As `info`.
        """
        self._caller.call(MethodId.SetPaused, timeout, paused=False)

    def single_step(self, steps: int = 1, *, timeout: float | None = None) -> int:
        """Lets a paused engine do some steps, and waits for them. A step that was sent is the first of them.

        Args:
          steps: How many.
          timeout: Seconds; None: the client's.

        Returns:
          How many were done: fewer if `pause` or `resume` was called meanwhile.

        Raises:
          InvalidArgument: The engine is not paused, or does other single steps: `pause` ends them.
          TandemError: As `info`.
        """
        count = integer("steps", steps, 1, 2**32 - 1, "; nothing was sent")
        return int(self._caller.call(MethodId.SingleStep, timeout, steps=count)["steps"])


def _entity(values: dict[str, Any]) -> Entity:
    transform = values["transform"]
    return Entity(
        values["id"],
        values["name"],
        None if transform is None else Transform(**transform),
        tuple(values["components"]),
    )
