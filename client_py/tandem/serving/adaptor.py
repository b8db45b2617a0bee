"""`Adaptor`: an `Engine` as the binding calls it, with checks of what the engine declares and returns.

Data flow: the binding (engine_bindings/python_engine.h) -> Adaptor -> the engine's methods -> checked values.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from tandem._native import CudaArray
from tandem.arguments import flag, integer, shown, text
from tandem.arguments.arrays import described
from tandem.errors import EngineFailed, InvalidArgument, Unsupported
from tandem.services.contract import SimulationContract
from tandem.services.scene import Transform
from tandem.serving.arrays import CudaArrays, EngineArrays, Fields, info_columns, is_rows, tree
from tandem.serving.engine import DebugMark, Engine
from tandem.spaces.fields import layout, place
from tandem.spaces.space_json import space_to_json

# The method that an engine defines -> the port that the services then use.
_PORTS = {
    "entities": "scene",
    "joints": "joints",
    "render": "camera",
    "show_marks": "debug",
    "set_contract": "randomization",
    "call_own": "own",
    "save_state": "states",
    "scene": "live_scene",
}

# Role, dtype, shape and path of a field.
FieldRow = tuple[str, str, tuple[int, ...], str]
Numbers = list[float] | None


class Gpu(NamedTuple):
    """`GpuSchema` of engine_adapter/engine.h; an image of 0 pixels: no images."""

    cuda_device: int
    fills_cpu: bool
    image_width: int
    image_height: int


class Schema(NamedTuple):
    """What the binding reads once: `EngineSchema` of engine_adapter/engine.h.

    A size of 0: observations or actions are fields. `description` is JSON, which docs/protocol.md defines ("Infos and
    the description"). The names are for display. `step_secs`: 0: unknown.
    """

    task: str
    num_envs: int
    obs_size: int
    act_size: int
    description: str
    fields: list[FieldRow]
    observation_names: list[str]
    action_names: list[str]
    step_secs: float
    gpu: Gpu | None
    images: tuple[int, int]  # width and height; 0: none


class JointInfo(NamedTuple):
    """Of the service mujoco: `MujocoPort::Info` of engine_adapter/engine_ports.h.

    An actuator is a name, the lowest and the highest control.
    """

    joint_names: list[str]
    position_names: list[str]
    nv: int
    actuators: list[tuple[str, float, float]]


class Adaptor:
    """An engine for the binding: its methods, and what it declares, checked.

    `ports` names the services' interfaces that the engine has: some of "scene", "joints", "camera", "debug",
    "randomization", "live_scene" and "own". `camera_rows` has id and name of each camera; empty without "camera".
    `joint_info` is None without "joints".
    """

    def __init__(self, engine: Engine) -> None:
        """Checks an engine.

        InvalidArgument: No engine; or an attribute or method is missing or has an invalid value. Unsupported: A space
        whose values have no fields.
        """
        if not isinstance(engine, Engine):
            is_class = isinstance(engine, type) and issubclass(engine, Engine)
            after = f"; pass an object, such as {engine.__name__}(num_envs)" if is_class else ""
            raise InvalidArgument(f"engine: expected a tandem.Engine, found {shown(engine)}{after}")
        self._engine = engine
        self._name = type(engine).__name__
        for method in ("reset", "step"):
            if not self._defines(method):
                arguments = "envs, seeds, arrays" if method == "reset" else "envs, arrays"
                raise InvalidArgument(
                    f"{method}: expected a method of {self._name}, found none; def {method}(self, {arguments})"
                )
        self.reset, self.step = engine.reset, engine.step
        self.clear_client_state = engine.clear_client_state
        self.schema = self._schema()
        self.ports = {port for method, port in _PORTS.items() if self._defines(method)}
        self.scene_name = text("scene_name", engine.scene_name)
        self.image_size = self._size("image_size")
        self.camera_rows = self._camera_rows() if "camera" in self.ports else []
        self.joint_info = self._joint_info() if "joints" in self.ports else None
        self._both("own_methods", bool(engine.own_methods), "call_own", "own" in self.ports)
        self._both("save_state", "states" in self.ports, "load_state", self._defines("load_state"))
        self._both("scene", self._defines("scene"), "poses", self._defines("poses"))

    def _defines(self, method: str) -> bool:
        return getattr(type(self._engine), method) is not getattr(Engine, method)

    @staticmethod
    def _both(one: str, has_one: bool, other: str, has_other: bool) -> None:
        if has_one != has_other:
            found = f"{one} without {other}" if has_one else f"{other} without {one}"
            raise InvalidArgument(f"{one}: expected both or none of {one} and {other}, found {found}")

    def _attribute(self, name: str) -> Any:
        try:
            return getattr(self._engine, name)
        except AttributeError:
            raise InvalidArgument(
                f"{name}: expected an attribute of {self._name}, found none; set self.{name} in __init__"
            ) from None

    def _schema(self) -> Schema:
        engine = self._engine
        num_envs = integer("num_envs", self._attribute("num_envs"), 1, 2**24)
        sizes, fields, described_spaces = {}, [], {}
        for role, name in (("obs", "observation_space"), ("action", "action_space")):
            space = self._attribute(name)
            leaves, pickled = layout(space, name)
            if pickled or not leaves:
                found = f"values that are pickled{place(pickled[0])}" if pickled else shown(space)
                raise Unsupported(
                    f"{name}: expected a space with numbers, found {found}; use Box, Discrete, MultiDiscrete, "
                    "MultiBinary, Text, and Dict, Tuple and OneOf of these"
                )
            sizes[role] = space.shape[0] if is_rows(space) else 0
            if not sizes[role]:
                fields += [(role, leaf.dtype.name, leaf.shape, leaf.path) for leaf in leaves]
            described_spaces[name] = space_to_json(space)
        description = {
            **described_spaces,
            "max_episode_steps": integer("max_episode_steps", engine.max_episode_steps, 0, 2**24),
            "infos": [
                {"name": text("info_sizes", name), "length": _info_size(name, size), "at_reset": True}
                for name, size in engine.info_sizes.items()
            ],
            "own_methods": [
                {"name": text("own_methods", name), "content_type": method.content_type, "help": method.help}
                for name, method in engine.own_methods.items()
            ],
        }
        step_secs = engine.step_secs
        if not isinstance(step_secs, int | float) or not 0 <= step_secs < math.inf:
            raise InvalidArgument(f"step_secs: expected finite seconds, 0 or more, found {shown(step_secs)}")
        return Schema(
            task=text("task", engine.task or self._name),
            num_envs=num_envs,
            obs_size=sizes["obs"],
            act_size=sizes["action"],
            description=json.dumps(description),
            fields=fields,
            observation_names=_names("observation_names", engine.observation_names, sizes["obs"]),
            action_names=_names("action_names", engine.action_names, sizes["action"]),
            step_secs=float(step_secs),
            gpu=self._gpu(),
            images=(0, 0) if engine.observation_image_size is None else self._size("observation_image_size"),
        )

    def _gpu(self) -> Gpu | None:
        engine = self._engine
        if engine.cuda_device is None:
            return None
        device = integer("cuda_device", engine.cuda_device, 0, 1023)
        width, height = (0, 0) if engine.cuda_image_size is None else self._size("cuda_image_size")
        return Gpu(device, flag("fills_cpu", engine.fills_cpu, after=""), width, height)

    def arrays(
        self,
        obs: NDArray[np.float32],
        actions: NDArray[np.float32],
        rewards: NDArray[np.float32],
        terminateds: NDArray[np.uint8],
        truncateds: NDArray[np.uint8],
        infos: NDArray[np.float64],
        fields: Fields,
        images: NDArray[np.uint8],
        cuda: tuple[dict[tuple[str, str], CudaArray], Callable[[int], None]] | None,
    ) -> EngineArrays:
        """Returns the arrays for the engine, of the region's rows, flags, fields and images, which may be empty."""
        engine, num_envs = self._engine, self.schema.num_envs
        given = {key: array.view() for key, array in fields.items()}
        actions = actions.view()
        for array in (actions, *(array for (role, _), array in given.items() if role == "action")):
            array.flags.writeable = False
        return EngineArrays(
            obs=obs if self.schema.obs_size else tree(engine.observation_space, "obs", given, num_envs),
            actions=actions if self.schema.act_size else tree(engine.action_space, "action", given, num_envs),
            rewards=rewards,
            terminateds=terminateds.view(np.bool_),
            truncateds=truncateds.view(np.bool_),
            infos=info_columns(engine.info_sizes, infos),
            images=images.reshape(num_envs, *self.schema.images[::-1], 3) if images.size else None,
            cuda=None if cuda is None else self._cuda_arrays(*cuda),
        )

    def _cuda_arrays(self, given: dict[tuple[str, str], CudaArray], write_on: Callable[[int], None]) -> CudaArrays:
        rows = given.get(("obs", "")) if self.schema.obs_size else None
        return CudaArrays(
            obs=rows or tree(self._engine.observation_space, "obs", given, self.schema.num_envs),
            rewards=given["reward", ""],
            images=given.get(("images", "")),
            write_on=write_on,
        )

    def refuse_result(self, method: str, result: object) -> NoReturn:
        """Refuses what `reset` or `step` returned."""
        raise EngineFailed(
            f"{method} of {self._name}: expected None, found {shown(result)}; write results into the rows of its "
            "argument `arrays`"
        )

    def entities(self, env: int) -> list[tuple[int, str, Numbers, Numbers, Numbers, list[str]]]:
        """Returns id, name, position, rotation, scale and components of each entity."""
        rows = []
        for number, entity in enumerate(self._engine.entities(env), 1):
            if entity.id != number:
                raise EngineFailed(f"entities of {self._name}: expected the ids 1, 2, ..., found {shown(entity.id)}")
            at = entity.transform or Transform(None, None, None)
            parts = (("position", at.position, 3), ("rotation", at.rotation, 4), ("scale", at.scale, 3))
            position, rotation, scale = (
                None if value is None else self._floats(f"{name} of entity {number}", value, size).tolist()
                for name, value, size in parts
            )
            rows.append((number, entity.name, position, rotation, scale, list(entity.components)))
        return rows

    def move_entity(self, env: int, entity_id: int, *parts: Numbers) -> None:
        """Moves an entity; `parts` are position, rotation and scale."""
        arrays = (None if part is None else np.array(part, np.float32) for part in parts)
        self._engine.move_entity(env, entity_id, Transform(*arrays))

    def joints(self, env: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns the positions and velocities."""
        assert self.joint_info is not None
        positions, velocities = self._engine.joints(env)
        return (
            self._floats("positions of joints", positions, len(self.joint_info.position_names)),
            self._floats("velocities of joints", velocities, self.joint_info.nv),
        )

    def controls(self, env: int) -> NDArray[np.float32]:
        """Returns the control of each actuator."""
        return self._floats("controls", self._engine.controls(env), len(self._engine.actuators))

    def set_control(self, env: int, actuator: int, value: float) -> None:
        """Sets a control for the next step."""
        self._engine.set_control(env, actuator, value)

    def render(self, env: int, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """Returns an image in C order."""
        image = self._engine.render(env, camera, width, height)
        if not isinstance(image, np.ndarray) or image.shape != (height, width, 3) or image.dtype != np.uint8:
            raise EngineFailed(
                f"render of {self._name}: expected uint8[{height}, {width}, 3], found {described(image)}; it must have "
                "the size of the arguments"
            )
        return np.ascontiguousarray(image)

    def scene_version(self) -> int:
        """Returns the number of the scene."""
        return integer("scene_version", self._engine.scene_version, 0, 2**64 - 1)

    def scene(self) -> bytes:
        """Returns the file of the live scene."""
        glb = self._engine.scene()
        if not isinstance(glb, bytes | bytearray | memoryview):
            raise EngineFailed(f"scene of {self._name}: expected the bytes of a .glb file, found {described(glb)}")
        return bytes(glb)

    def poses(self, envs: Sequence[int], nodes: int) -> NDArray[np.float32]:
        """Returns the poses of the nodes of some environments, float32[n, nodes, 7]."""
        out = np.full((len(envs), nodes, 7), np.nan, np.float32)  # what the engine leaves out is not drawn
        self._engine.poses(np.array(envs, np.int64), out)
        return out

    def show_marks(self, env: int, marks: Sequence[tuple[Any, ...]]) -> None:
        """Passes an environment's marks."""
        self._engine.show_marks(env, [DebugMark(is_arrow, *map(tuple, rest)) for is_arrow, *rest in marks])

    def call_own(self, method: int, data: bytes) -> bytes:
        """Returns the answer of a method of the engine's own, by its number in `own_methods`."""
        name = list(self._engine.own_methods)[method]
        answer = self._engine.call_own(name, data)
        if not isinstance(answer, bytes | bytearray | memoryview):
            raise EngineFailed(f"call_own({name!r}) of {self._name}: expected bytes, found {shown(answer)}")
        return bytes(answer)

    def save_state(self, env: int) -> bytes:
        """Returns an environment's state."""
        state = self._engine.save_state(env)
        if not isinstance(state, bytes | bytearray | memoryview):
            raise EngineFailed(f"save_state of {self._name}: expected bytes, found {shown(state)}")
        return bytes(state)

    def load_state(self, env: int, data: bytes) -> None:
        """Passes a state."""
        self._engine.load_state(env, data)

    def set_contract(self, envs: list[int], fields: dict[str, Any] | None, seed: int | None) -> list[str]:
        """Passes a contract; returns the names of its unused fields."""
        contract = None
        if fields is not None:
            given: dict[str, Any] = {name: value for name, value in fields.items() if _is_given(value)}
            for name, value in given.items():
                if isinstance(value, np.ndarray):
                    given[name] = tuple(value.tolist())
            contract = SimulationContract(**given)
        return [str(name) for name in self._engine.set_contract(envs, contract, seed)]

    def _floats(self, what: str, value: Any, size: int) -> NDArray[np.float32]:
        array = np.asarray(value)
        if array.shape != (size,) or array.dtype.kind not in "fiu":
            raise EngineFailed(f"{what} of {self._name}: expected {size} numbers, found {described(array)}")
        return array.astype(np.float32)

    def _size(self, name: str) -> tuple[int, int]:
        size = getattr(self._engine, name)
        if not isinstance(size, tuple | list) or len(size) != 2:
            raise InvalidArgument(f"{name}: expected (width, height), found {shown(size)}")
        return integer(f"{name}[0]", size[0], 1), integer(f"{name}[1]", size[1], 1)

    def _camera_rows(self) -> list[tuple[int, str]]:
        """Returns the cameras; one that is an entity has its id."""
        names = _names("cameras", self._engine.cameras, 0)
        if not names:
            raise InvalidArgument(
                f"cameras: expected a name for render, found none; set cameras = ('camera',) in {self._name}"
            )
        known = {row[1]: row[0] for row in self.entities(0)} if "scene" in self.ports else {}
        return [(known.get(name, len(known) + number), name) for number, name in enumerate(names, 1)]

    def _joint_info(self) -> JointInfo:
        engine = self._engine
        if len(engine.actuators) > 0 and not self._defines("controls"):
            raise InvalidArgument(
                f"controls: expected a method of {self._name}, which has actuators, found none; def controls(self, env)"
            )
        names = _names("joint_names", engine.joint_names, 0)
        positions = _names("position_names", engine.position_names, 0) or names
        _, velocities = engine.joints(0)
        actuators = [(text("actuators", each.name), float(each.low), float(each.high)) for each in engine.actuators]
        return JointInfo(names, positions, np.size(velocities), actuators)


def _is_given(value: Any) -> bool:
    """Returns whether a contract has this field: an absent one is None, 0 or empty."""
    return value is not None and (len(value) > 0 if isinstance(value, np.ndarray | str) else value != 0)


def _info_size(name: str, size: object) -> int | None:
    return None if size is None else integer(f"info_sizes[{name!r}]", size, 1, 2**24)  # type: ignore[arg-type]


def _names(name: str, names: Sequence[str], size: int) -> list[str]:
    """Returns names as a list; if a size is given, there are none, or as many."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidArgument(f"{name}: expected a list of names, found {shown(names)}")
    if size and names and len(names) != size:
        raise InvalidArgument(f"{name}: expected {size} names, or none, found {len(names)}")
    return [text(name, each) for each in names]
