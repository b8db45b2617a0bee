"""Groups of options that `make_vec` and `launch_engine` take. A group checks its values when it is made."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from numpy.typing import ArrayLike, DTypeLike

from tandem._native import MAX_FRAME_HZ, MAX_RENDER_SIDE, MAX_RENDER_SLOTS
from tandem.arguments import flag, integer, one_of, path, rate, seconds, shown, text
from tandem.engine.worker_environment import WorkerSettings
from tandem.errors import InvalidArgument

Size = tuple[int, int] | str
Effect = Literal["shadows", "reflections", "multisampling"]
Effects = Sequence[Effect] | Literal["all"]
Priority = Literal["steps", "complete"]

_Drawing = TypeVar("_Drawing", "FrameOptions", "ImageOptions")


def _checked(default: Any, check: Callable[[str, Any], Any]) -> Any:
    """Returns a field; `check(name, value)` converts its values, or refuses them."""
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True)
class _Group:
    """Options that are checked when they are made; InvalidArgument: one of another type, or out of its range."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value, check = getattr(self, each.name), each.metadata.get("check")
            if check is not None and (value is not None or each.default is not None):
                value = check(f"{type(self).__name__}.{each.name}", value)
                object.__setattr__(self, each.name, value)  # the class is frozen


def size_of(argument: str, size: object) -> tuple[int, int]:
    """Returns (width, height) of a pair or of a text such as "320x240"; refuses anything else."""
    sides: object = size
    if isinstance(size, str) and (match := re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", size)):
        sides = (int(match[1]), int(match[2]))
    if isinstance(sides, str) or not isinstance(sides, Sequence) or len(sides) != 2:
        raise InvalidArgument(f"{argument}: expected (width, height) or a text such as '320x240', found {shown(size)}")
    width, height = (side_of(f"{argument}[{at}]", side) for at, side in enumerate(sides))
    return width, height


def side_of(argument: str, side: object) -> int:
    """Returns a side of an environment's image, in pixels; refuses what is no integer, or out of its range."""
    return integer(argument, side, 1, MAX_RENDER_SIDE, bools=False)  # type: ignore[arg-type]  # others are refused


def _items(values: object) -> tuple[Any, ...] | None:
    """Returns the items; None: it has none, or is a text or a mapping."""
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        return None
    try:
        return tuple(values)
    except TypeError:  # an array without dimensions
        return None


def _envs(argument: str, envs: object) -> tuple[int, ...] | str:
    if isinstance(envs, str) and envs == "all":
        return envs
    if indices := tuple(integer(f"{argument}[{at}]", env, 0) for at, env in enumerate(_items(envs) or ())):
        return indices
    raise InvalidArgument(f"{argument}: expected indices of environments, 'all' or None, found {shown(envs)}")


def _effects(argument: str, effects: object) -> tuple[str, ...] | str:
    known = get_args(Effect)
    if isinstance(effects, str) and effects == "all":
        return effects
    if isinstance(effects, str) or not isinstance(effects, Sequence):
        raise InvalidArgument(f"{argument}: expected a list of some of {known}, or 'all', found {shown(effects)}")
    for effect in effects:
        one_of(argument, effect, known)
    return tuple(effects)


def _priority(argument: str, priority: object) -> object:
    one_of(argument, priority, get_args(Priority))
    return priority


def _cameras(argument: str, camera: object) -> object:
    """Returns a camera's name, or pairs of key and camera."""
    its = camera.items() if isinstance(camera, Mapping) else _items(camera)
    if its is None:
        return _camera(argument, camera)
    pairs = tuple((each, each) if isinstance(each, str) else each for each in its)
    keys = [pair[0] for pair in pairs if isinstance(pair, tuple) and len(pair) == 2]
    if not keys or len(keys) != len(pairs) or len(set(map(shown, keys))) != len(keys) or "state" in keys:
        raise InvalidArgument(
            f"{argument}: expected a camera's name, a list of different names, or a mapping from keys other than "
            f"'state' to names, found {shown(camera)}"
        )
    return tuple(
        (text(f"{argument} key", key), None if name is None else _camera(f"{argument}[{key!r}]", name))
        for key, name in pairs
    )


def _camera(argument: str, name: Any) -> str:
    if "," in text(argument, name):  # separates names on the command line
        raise InvalidArgument(f"{argument}: expected a camera's name without ',', found {shown(name)}")
    return str(name)


def words_of(argument: str, words: object) -> tuple[str, ...]:
    """Returns words of a program's command line, in which paths are texts; refuses anything else."""
    given = _items(words)
    if given is not None and all(isinstance(word, str | os.PathLike) for word in given):
        return tuple(os.fsdecode(word) for word in given)
    raise InvalidArgument(f"{argument}: expected texts such as ('--gravity=3',), found {shown(words)}")


def _wait(argument: str, wait: object) -> object:
    one_of(argument, wait, ("adaptive", "spin", "block"))
    return wait


def _on_error(argument: str, value: object) -> object:
    one_of(argument, value, ("raise", "truncate"))
    return value


def _path(argument: str, value: object) -> object:
    path(argument, value)
    return value


def _steps(argument: str, steps: int) -> int:
    no_limit = isinstance(steps, int) and steps == -1  # Gymnasium's
    return integer(argument, 0 if no_limit else steps, 0, 2**32 - 1)


def _function(argument: str, function: object) -> object:
    if not callable(function):
        raise InvalidArgument(f"{argument}: expected a function of a tandem.vector.Transition, found {shown(function)}")
    return function


def _named(argument: str, values: object) -> object:
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise InvalidArgument(f"{argument}: expected a mapping from names to values, found {shown(values)}")
    return values


@dataclass(frozen=True)
class FrameOptions(_Group):
    """How frames for viewers are drawn, and how often. Environments in Python draw themselves, by `render`.

    >>> import tandem
    >>> tandem.FrameOptions("320x240", envs=[0, 3], hz=30)
    FrameOptions(size=(320, 240), envs=(0, 3), hz=30.0, priority='steps', slots=8, effects=(), camera='follow')

    Attributes:
      size: (width, height) of one environment's image in pixels, or a text such as "320x240".
      envs: Indices of the environments that are drawn, or "all"; None: those of the variables MOSAIC_FASTLANE_*, by
        default the first four.
      hz: Frames per second at most; 0: only the frames that a client requests.
      priority: "steps": frames become rare while cores are scarce. "complete": they keep `hz`, whatever the steps
        lose.
      slots: Number of frames that the region holds.
      effects: C++: some of "shadows", "reflections" and "multisampling", or "all". docs/frames.md lists their cost.
      camera: C++: "follow" follows a robot that moves away; "gymnasium" is the camera of Gymnasium's `render`; other
        names are those of the model's cameras.
    """

    size: Size = field(metadata={"check": size_of})
    _: KW_ONLY
    envs: Sequence[int] | Literal["all"] | None = _checked(None, _envs)
    hz: float = _checked(60.0, partial(rate, most=MAX_FRAME_HZ))
    priority: Priority = _checked("steps", _priority)
    slots: int = _checked(8, partial(integer, least=1, last=MAX_RENDER_SLOTS))
    effects: Effects = _checked((), _effects)
    camera: str = _checked("follow", text)


@dataclass(frozen=True)
class ImageOptions(_Group):
    """How an engine draws the images that belong to each step's observations.

    >>> import tandem
    >>> tandem.ImageOptions((64, 64), camera="track").keys
    ('image',)

    Attributes:
      size: (width, height) of one image in pixels, or a text such as "64x64".
      camera: Name of one of the model's cameras; None: the camera of Gymnasium's `render`. Several: a list of names, or
        a mapping from keys of the observation to names or None; kept as pairs of key and name.
      effects: Some of "shadows", "reflections" and "multisampling", or "all". docs/frames.md lists their cost.
      in_observation: Of `make_vec`: whether the images are part of the observations; otherwise `client.images` alone
        has them.
    """

    size: Size = field(metadata={"check": size_of})
    _: KW_ONLY
    camera: str | None | Sequence[str] | Mapping[str, str | None] = _checked(None, _cameras)
    effects: Effects = _checked("all", _effects)
    in_observation: bool = _checked(True, partial(flag, after=""))

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each camera's images in an observation."""
        return tuple(key for key, _ in self._pairs())

    def _pairs(self) -> tuple[tuple[str, str | None], ...]:
        # `_cameras` has made pairs of what is neither.
        return (("image", self.camera),) if isinstance(self.camera, str | None) else self.camera  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class ProcessOptions(_Group):
    """What `EngineOptions` and `WorkerOptions` have in common.

    Attributes:
      restart: Whether a process that dies is started again; otherwise its death raises `PeerGone`.
      timeout: Seconds that a step or reset may take. A `render` for a viewer is part of the step that waits for it.
      start_timeout: Seconds that the processes may take to start; imports of environments in Python do not count.
      wait: How the client waits for results: "adaptive", "spin" or "block"; see `SharedMemoryClient`.
      share_core: Whether a step may begin on the client's core; see `SharedMemoryClient`.
    """

    restart: bool = _checked(False, partial(flag, after=""))
    timeout: float = _checked(10.0, seconds)
    start_timeout: float = _checked(30.0, seconds)
    wait: Literal["adaptive", "spin", "block"] = _checked("adaptive", _wait)
    share_core: bool = _checked(True, partial(flag, after=""))


@dataclass(frozen=True, kw_only=True)
class EngineOptions(ProcessOptions):
    """How `make_vec` starts the engine of a task in C++, and waits for it; it has the attributes of `ProcessOptions`.

    >>> import tandem
    >>> tandem.EngineOptions(restart=True, timeout=30).timeout
    30.0

    Attributes:
      server: Path of the engine's program; see `launch_engine`.
      flags: Further flags for it, such as ("--gravity=3",) for an engine of your own; its --help lists them.
      grpc: HOST:PORT, such as "127.0.0.1:50051", for programs for LuckyEngine that only look (docs/grpc.md).
    """

    server: str | os.PathLike[str] | None = _checked(None, _path)
    flags: Sequence[str] = _checked((), words_of)
    grpc: str | None = _checked(None, text)


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(ProcessOptions):
    """How `make_vec` starts the worker processes of environments in Python, and waits for them.

    It has the attributes of `ProcessOptions`. A worker is started again five times in 60 s at most.

    >>> import tandem
    >>> tandem.WorkerOptions(batch_size=4).restart
    False

    Attributes:
      batch_size: `recv` returns results of so many environments, those that are ready first; None: of all.
      call_timeout: Seconds that `call`, `get_attr`, `set_attr` or `render` may take, without imports; None: `timeout`.
      info_bytes: Room for the infos of each worker; None: 64 KiB, and 1 KiB for each of its environments.
      object_bytes: The longest pickle of a part of an observation or action that is pickled.
      on_error: What an exception of an environment's `step` does: "raise" raises `EnvFailed`; "truncate" truncates the
        episode, with reward 0 and the last observation, and resets the environment by the autoreset mode. The episode's
        last infos then have "env_failed", True, and "env_error", the exception's class and text; the worker prints each
        such text once, with a traceback. An exception of `reset` raises `EnvFailed` in any case.
    """

    batch_size: int | None = _checked(None, partial(integer, least=1))
    call_timeout: float | None = _checked(None, seconds)
    info_bytes: int | None = _checked(None, partial(integer, least=4096, last=2**30))
    object_bytes: int = _checked(2**16, partial(integer, least=64, last=2**24 - 8))
    on_error: Literal["raise", "truncate"] = _checked("raise", _on_error)


@dataclass(frozen=True, kw_only=True)
class TaskOptions(_Group):
    """Which results `make_vec`'s environments return, and how long episodes are.

    >>> import tandem
    >>> tandem.TaskOptions(max_episode_steps=200).copy
    True

    Attributes:
      copy: False: observations are the region's own arrays, which the next step overwrites; in C++ float32.
      max_episode_steps: Steps that truncate an episode; 0 or -1: no limit; None: the task's own.
      dtype: C++, of observations; None: Gymnasium's (float64 for MuJoCo, from float32), float32 if copy=False.
      reward: C++: a function of a `tandem.vector.Transition` that returns all rewards (docs/own_robot.md).
      terminated: C++: the same for terminations, bool[num_envs].
      observation: C++: the same for observations, [num_envs, ...].
      kwargs: Options of the task, or arguments of the environment, whose names `make_vec` or these groups have.
    """

    copy: bool = _checked(True, partial(flag, after=""))
    max_episode_steps: int | None = _checked(None, _steps)
    dtype: DTypeLike | None = None
    reward: Callable[[Any], ArrayLike] | None = _checked(None, _function)
    terminated: Callable[[Any], ArrayLike] | None = _checked(None, _function)
    observation: Callable[[Any], ArrayLike] | None = _checked(None, _function)
    kwargs: Mapping[str, Any] | None = _checked(None, _named)


def group_of(argument: str, given: _Drawing | Size, kind: type[_Drawing]) -> _Drawing:
    """Returns the group that was given, or a group of the size that was given; refuses anything else."""
    if isinstance(given, kind):
        return given
    if isinstance(given, tuple | list | str):
        return kind(size_of(argument, given))
    raise InvalidArgument(
        f"{argument}: expected (width, height), a text such as '320x240', or tandem.{kind.__name__}, "
        f"found {shown(given)}"
    )


def frame_flags(options: FrameOptions, num_envs: int) -> list[str]:
    """Returns the group as flags of the engine's program; none: its environments are not shown."""
    envs = shown_envs(options, num_envs)
    return [] if envs is None else _flags("frame", options, envs=envs)


def shown_envs(options: FrameOptions, num_envs: int) -> Sequence[int] | Literal["all"] | None:
    """Returns the environments that are drawn; None: none, by MOSAIC_FASTLANE_VIDEO_MODE=off.

    InvalidArgument: Invalid variables MOSAIC_FASTLANE_*.
    """
    return options.envs or WorkerSettings.read().shown(num_envs) or None


def image_flags(options: ImageOptions) -> list[str]:
    """Returns the group as flags of the engine's program."""
    return _flags("image", options, camera=",".join(camera or "" for _, camera in options._pairs()))


def _flags(kind: str, options: FrameOptions | ImageOptions, **changed: Any) -> list[str]:
    values = {each.name: getattr(options, each.name) for each in fields(options)} | changed
    width, height = values.pop("size")
    values.pop("in_observation", None)  # the client's
    return [f"--{kind}s={width}x{height}", *(f"--{kind}_{name}={_joined(value)}" for name, value in values.items())]


def _joined(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return "" if value is None else str(value)
