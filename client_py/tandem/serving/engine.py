"""`Engine`: the base class of engines in Python."""

from __future__ import annotations  # short signatures in `help`

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from tandem.errors import Unsupported
from tandem.services.contract import SimulationContract
from tandem.services.scene import Entity, Transform
from tandem.serving.arrays import EngineArrays

Index = slice | NDArray[np.int64]


class Actuator(NamedTuple):
    """An actuator of an engine's `joints`, "" for no name; `send_control` clips its value to low .. high by default."""

    name: str
    low: float = -np.inf
    high: float = np.inf


class DebugMark(NamedTuple):
    """A line, or an arrow from `start` to `end`, to draw in an environment's images.

    The points are (x, y, z), metres in world coordinates; red, green, blue and alpha 0 to 1.
    """

    is_arrow: bool
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    rgba: tuple[float, float, float, float]


class OwnMethod(NamedTuple):
    """A method of an engine's own: the content type of its request and answer, and a line of help."""

    content_type: str = "application/octet-stream"
    help: str = ""


class Engine:
    """Environments that are simulated together, as a batch. `tandem.serve` serves them to a trainer in any language.

    A subclass sets `num_envs`, `observation_space` and `action_space`, and defines `reset` and `step`. Both get the
    arrays of all environments, and write the rows of some: `obs`, `rewards`, `terminateds`, `truncateds` and `infos`
    (`help(tandem.serving.arrays.EngineArrays)`). They are shared memory, so nothing is copied. Autoreset modes are the
    host's work: an environment whose episode has ended continues until the host calls `reset` for it.

    >>> import numpy as np
    >>> import tandem
    >>> from gymnasium import spaces
    >>> class Counter(tandem.Engine):
    ...     observation_space = spaces.Box(0, np.inf, (1,))
    ...     action_space = spaces.Box(-1, 1, (2,))
    ...     def __init__(self, num_envs):
    ...         self.num_envs = num_envs
    ...         self.count = np.zeros(num_envs)
    ...     def reset(self, envs, seeds, arrays):
    ...         self.count[envs] = arrays.obs[envs, 0] = 0
    ...     def step(self, envs, arrays):
    ...         self.count[envs] += 1
    ...         arrays.obs[envs, 0] = self.count[envs]
    ...         arrays.rewards[envs] = arrays.actions[envs].sum(axis=1)
    ...         arrays.terminateds[envs] = False
    ...         arrays.truncateds[envs] = self.count[envs] >= 100

    `tandem.serve(Counter(4), name="demo")` serves it until Ctrl-C, and `tandem.serve_program(Counter)` by a command
    line. All methods but `reset` and `step` are optional: most make a service of the engine available
    (docs/commands.md). One thread calls all methods, one at a time. If a method raises, the call fails with
    `EngineFailed` and the exception's text, the traceback goes to the engine's log, and the engine continues to serve.
    A method may also raise `tandem.Unsupported` or `tandem.InvalidArgument`, which the caller of a service gets.

    Attributes:
      num_envs: Number of environments.
      observation_space: Of one environment. `EngineArrays` has the arrays of each kind of space.
      action_space: Of one environment.
      task: The task's name, at most 63 bytes; by default the class's name.
      max_episode_steps: The time limit that `truncateds` reports, for display; 0: none.
      step_secs: Simulated seconds of a step; 0: unknown. Real time needs it.
      info_sizes: Infos that steps and resets write: the number of values, or None for one number.
      observation_names: For display: empty, or a name for each value of a float32 observation.
      action_names: For display, as `observation_names`.
      scene_name: For `entities`.
      joint_names: For `joints`.
      position_names: For `joints`, if joints have several positions: a name for each; else `joint_names`.
      actuators: For `controls` and `set_control`: each an `Actuator`.
      cameras: For `render`: the names of the cameras; the first is the viewport's.
      image_size: For `render`: (width, height) of an image whose caller names no size.
      observation_image_size: (width, height) of an RGB image beside each observation, which `reset` and `step` write in
        `arrays.images`, and clients read as `client.images`; None: none.
      scene_version: For `scene`: another number makes viewers get the new scene.
      own_methods: For `call_own`: the methods by name.
      cuda_device: The number of the CUDA device on which the engine writes its observations; None: only in the region.
        The arrays have a part `cuda` then, unless there is no driver (docs/gpu.md).
      fills_cpu: With `cuda_device`: whether the engine also writes `arrays.obs`. If not, it cannot serve without the
        device, and clients read `obs_cuda` only. Rewards and flags are always written in the region.
      cuda_image_size: With `cuda_device`: (width, height) of the images that the engine writes on the GPU; None: none.
    """

    num_envs: int
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    task: str = ""
    max_episode_steps: int = 0
    step_secs: float = 0.0
    info_sizes: ClassVar[Mapping[str, int | None]] = {}
    observation_names: Sequence[str] = ()
    action_names: Sequence[str] = ()
    scene_name: str = ""
    joint_names: Sequence[str] = ()
    position_names: Sequence[str] = ()
    actuators: Sequence[Actuator] = ()
    cameras: Sequence[str] = ("camera",)
    image_size: tuple[int, int] = (320, 240)
    observation_image_size: tuple[int, int] | None = None
    scene_version: int = 0
    own_methods: ClassVar[Mapping[str, OwnMethod]] = {}
    cuda_device: int | None = None
    fills_cpu: bool = True
    cuda_image_size: tuple[int, int] | None = None

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Starts a new episode in some environments. Writes their rows of `obs` and `infos`, and no other row.

        Args:
          envs: int64[n], indices of the environments, each once.
          seeds: A seed for each of `envs`: its random stream starts again from the seed. None: the stream continues.
          arrays: Of all environments.
        """
        raise NotImplementedError

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Steps some environments once. Writes their rows of all arrays except `actions`, and no other row.

        Args:
          envs: An index of arrays: `slice(None)` for all environments, else int64[n], ascending. Both work in
            `array[envs]` on either side of an assignment.
          arrays: Of all environments.
        """
        raise NotImplementedError

    def clear_client_state(self) -> None:
        """Undoes changes of services, such as moved entities and contracts. A reset of all environments follows."""

    def entities(self, env: int) -> Sequence[Entity]:
        """Returns the entities of an environment, for the service scene. Their ids are 1, 2, ... in each.

        An engine with cameras gets this call once before the first reset, too.
        """
        raise Unsupported("scene: this engine has no entities")

    def move_entity(self, env: int, entity_id: int, transform: Transform) -> None:
        """Moves an entity, for the service scene. Parts of the transform that are None stay unchanged."""
        raise Unsupported("scene: this engine cannot move its entities")

    def joints(self, env: int) -> tuple[ArrayLike, ArrayLike]:
        """Returns float32[nq] positions and float32[nv] velocities, for the services mujoco and telemetry.

        It is also called once before the first reset.
        """
        raise Unsupported("mujoco: this engine has no joints")

    def controls(self, env: int) -> ArrayLike:
        """Returns the control of each actuator: the last step's, or a later one of `set_control`.

        If there are as many actuators as float32 actions, it is also the action of a step that no client requested.
        """
        return np.zeros(len(self.actuators))

    def set_control(self, env: int, actuator: int, value: float) -> None:
        """Sets the control of an actuator for the next step, in place of the action's value."""
        raise Unsupported("mujoco: this engine's actuators cannot be set")

    def render(self, env: int, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """Returns an image, uint8[height, width, 3], for the services camera and viewport, and for frames.

        No step runs meanwhile. Frames are drawn by the first camera while a viewer is attached: a step then waits for
        the images of the shown environments.
        """
        raise Unsupported("camera: this engine does not render")

    def scene(self) -> bytes:
        """Returns the live scene, which viewers draw themselves: a file of glTF 2.0 in its binary form (.glb).

        It has the geometry of one environment. Its nodes that move are those of `scenes[0].extras.tandem.moving`, or
        else those with a name and a mesh (docs/protocol.md, "The live scene"). Called when a viewer begins to watch,
        and after a change of `scene_version`.
        """
        raise Unsupported("scene: this engine has no live scene")

    def poses(self, envs: NDArray[np.int64], out: NDArray[np.float32]) -> None:
        """Writes the poses of the live scene's nodes, at most 60 times a second while a viewer watches.

        Args:
          envs: int64[n], indices of the environments.
          out: float32[n, nodes, 7], in the world of the engine: x, y, z, and the rotation as a unit quaternion x, y, z,
            w.
        """
        raise Unsupported("scene: this engine has no live scene")

    def call_own(self, name: str, data: bytes) -> bytes:
        """Answers a call of one of `own_methods`: `client.call(name, data)`."""
        raise Unsupported("own: this engine has no methods of its own")

    def show_marks(self, env: int, marks: Sequence[DebugMark]) -> None:
        """Takes the marks for later images of an environment, in place of its earlier ones, for the service debug."""
        raise Unsupported("debug: this engine draws no marks")

    def set_contract(self, envs: Sequence[int], contract: SimulationContract | None, seed: int | None) -> Sequence[str]:
        """Randomises later resets of some environments, for `reset(contract=...)` and the service agent.

        Args:
          envs: Indices of the environments.
          contract: From which they draw their physics; None: no randomisation.
          seed: Environment i draws from the seed + i; None: the engine chooses.

        Returns:
          Names of given fields without effect on this task.
        """
        raise Unsupported("agent: this engine has no domain randomisation")

    def save_state(self, env: int) -> bytes:
        """Returns all that decides an environment's future, for `save_state` of the environments.

        Its rows in the arrays, and whether its episode has ended, are saved without it.
        """
        raise Unsupported("states: this engine does not save them")

    def load_state(self, env: int, data: bytes) -> None:
        """Puts a state of `save_state` in place, instead of a reset of this environment; writes no rows.

        The state may come from another environment, or another process with an equal engine.
        """
        raise Unsupported("states: this engine does not load them")
