"""Groups of options that `make_vec` and `launch_engine` take. A group checks its values when it is made."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeVar, get_args

from tandem._native import MAX_FRAME_HZ, MAX_RENDER_SIDE, MAX_RENDER_SLOTS
from tandem.arguments import flag, integer, one_of, path, rate, seconds, shown, text
from tandem.engine.worker_environment import WorkerSettings
from tandem.errors import InvalidArgument

Size = tuple[int, int] | str
Effect = Literal["shadows", "reflections", "multisampling"]
Effects = Sequence[Effect] | Literal["all"]

_Group = TypeVar("_Group", "FrameOptions", "ImageOptions")


@dataclass(frozen=True)
class FrameOptions:
    """How frames for viewers are drawn, and how often. Environments in Python draw themselves, by `render`.

    >>> import tandem
    >>> tandem.FrameOptions("320x240", envs=[0, 3], hz=30)
    FrameOptions(size=(320, 240), envs=(0, 3), hz=30.0, slots=8, effects=(), camera='follow')

    Attributes:
      size: (width, height) of one environment's image in pixels, or a text such as "320x240".
      envs: Indices of the environments that are drawn, or "all"; None: those of the variables MOSAIC_FASTLANE_*, by
        default the first four.
      hz: Frames per second at most; 0: only the frames that a client requests.
      slots: Number of frames that the region holds.
      effects: C++: some of "shadows", "reflections" and "multisampling", or "all". docs/frames.md lists their cost.
      camera: C++: "follow" follows a robot that moves away; "gymnasium" is the camera of Gymnasium's `render`; other
        names are those of the model's cameras.
    """

    size: Size
    _: KW_ONLY
    envs: Sequence[int] | Literal["all"] | None = None
    hz: float = 60.0
    slots: int = 8
    effects: Effects = ()
    camera: str = "follow"

    def __post_init__(self) -> None:
        """Checks the values; InvalidArgument: one of another type, or out of its range."""
        _set(self, "size", size_of("FrameOptions.size", self.size))
        _set(self, "envs", _envs(self.envs))
        _set(self, "hz", rate("FrameOptions.hz", self.hz, MAX_FRAME_HZ))
        _set(self, "slots", integer("FrameOptions.slots", self.slots, 1, MAX_RENDER_SLOTS))
        _set(self, "effects", _effects("FrameOptions.effects", self.effects))
        text("FrameOptions.camera", self.camera)


@dataclass(frozen=True)
class ImageOptions:
    """How an engine draws the images that belong to each step's observations.

    >>> import tandem
    >>> tandem.ImageOptions((64, 64), camera="track")
    ImageOptions(size=(64, 64), camera='track', effects='all')

    Attributes:
      size: (width, height) of one environment's image in pixels, or a text such as "64x64".
      camera: Name of one of the model's cameras; None: the camera of Gymnasium's `render`.
      effects: Some of "shadows", "reflections" and "multisampling", or "all". docs/frames.md lists their cost.
    """

    size: Size
    _: KW_ONLY
    camera: str | None = None
    effects: Effects = "all"

    def __post_init__(self) -> None:
        """Checks the values; InvalidArgument: one of another type, or out of its range."""
        _set(self, "size", size_of("ImageOptions.size", self.size))
        if self.camera is not None:
            text("ImageOptions.camera", self.camera)
        _set(self, "effects", _effects("ImageOptions.effects", self.effects))


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How `make_vec` starts its engine and waits for it.

    >>> import tandem
    >>> tandem.EngineOptions(restart=True, timeout=30).timeout
    30.0

    Attributes:
      restart: Whether a dead engine is started again; otherwise its death raises `PeerGone`.
      timeout: Seconds that a step or reset may take. A `render` for a viewer is part of the step that waits for it.
      call_timeout: Of environments in Python: seconds that `call`, `get_attr`, `set_attr` or `render` may take, without
        imports; None: `timeout`.
      start_timeout: Seconds that the engine, or environments in Python without their imports, may take to start.
      wait: How the client waits for results: "adaptive", "spin" or "block"; see `SharedMemoryClient`.
      server: Path of the engine's program; see `launch_engine`.
      flags: Further flags for it, such as ("--gravity=3",) for an engine of your own; its --help lists them.
      info_bytes: Of environments in Python: room for the infos of each worker; None: 64 KiB, and 1 KiB for each of its
        environments.
      object_bytes: Of environments in Python: the longest pickle of a part of an observation or action that is pickled.
    """

    restart: bool = False
    timeout: float = 10.0
    call_timeout: float | None = None
    start_timeout: float = 30.0
    wait: Literal["adaptive", "spin", "block"] = "adaptive"
    server: str | os.PathLike[str] | None = None
    flags: Sequence[str] = ()
    info_bytes: int | None = None
    object_bytes: int = 2**16

    def __post_init__(self) -> None:
        """Checks the values; InvalidArgument: one of another type, or out of its range."""
        if self.info_bytes is not None:
            _set(self, "info_bytes", integer("EngineOptions.info_bytes", self.info_bytes, 4096, 2**30))
        _set(self, "object_bytes", integer("EngineOptions.object_bytes", self.object_bytes, 64, 2**24 - 8))
        _set(self, "restart", flag("EngineOptions.restart", self.restart, after=""))
        _set(self, "timeout", seconds("EngineOptions.timeout", self.timeout))
        if self.call_timeout is not None:
            _set(self, "call_timeout", seconds("EngineOptions.call_timeout", self.call_timeout))
        _set(self, "start_timeout", seconds("EngineOptions.start_timeout", self.start_timeout))
        one_of("EngineOptions.wait", self.wait, ("adaptive", "spin", "block"))
        path("EngineOptions.server", self.server)
        _set(self, "flags", words_of("EngineOptions.flags", self.flags))


def group_of(argument: str, given: _Group | Size, kind: type[_Group]) -> _Group:
    """Returns the group that was given, or a group of the size that was given; refuses anything else."""
    if isinstance(given, kind):
        return given
    if isinstance(given, tuple | list | str):
        return kind(size_of(argument, given))
    raise InvalidArgument(
        f"{argument}: expected (width, height), a text such as '320x240', or tandem.{kind.__name__}, "
        f"found {shown(given)}"
    )


def words_of(argument: str, words: object) -> tuple[str, ...]:
    """Returns words of a program's command line, in which paths are texts; refuses anything else."""
    if isinstance(words, Iterable) and not isinstance(words, str | bytes):
        given = tuple(words)
        if all(isinstance(word, str | os.PathLike) for word in given):
            return tuple(os.fsdecode(word) for word in given)
    raise InvalidArgument(f"{argument}: expected texts such as ('--gravity=3',), found {shown(words)}")


def frame_flags(options: FrameOptions, num_envs: int) -> list[str]:
    """Returns the group as flags of the engine's program; none: its environments are not shown."""
    envs = shown_envs(options, num_envs)
    if envs is None:
        return []
    return [
        f"--frames={_times(options.size)}",
        f"--frame_envs={envs if isinstance(envs, str) else ','.join(map(str, envs))}",
        f"--frame_hz={options.hz}",
        f"--frame_slots={options.slots}",
        f"--frame_effects={_joined(options.effects)}",
        f"--frame_camera={options.camera}",
    ]


def shown_envs(options: FrameOptions, num_envs: int) -> Sequence[int] | Literal["all"] | None:
    """Returns the environments that are drawn; None: none, by MOSAIC_FASTLANE_VIDEO_MODE=off.

    Raises:
      InvalidArgument: Invalid variables MOSAIC_FASTLANE_*.
    """
    return options.envs or WorkerSettings.read().shown(num_envs) or None


def image_flags(options: ImageOptions) -> list[str]:
    """Returns the group as flags of the engine's program."""
    return [
        f"--images={_times(options.size)}",
        f"--image_camera={options.camera or ''}",
        f"--image_effects={_joined(options.effects)}",
    ]


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


def _set(group: object, name: str, value: object) -> None:
    object.__setattr__(group, name, value)  # the class is frozen


def _envs(envs: object) -> tuple[int, ...] | str | None:
    if envs is None or (isinstance(envs, str) and envs == "all"):
        return envs
    if isinstance(envs, Iterable) and not isinstance(envs, str):
        indices = tuple(integer(f"FrameOptions.envs[{at}]", env, 0) for at, env in enumerate(envs))
        if indices:
            return indices
    raise InvalidArgument(f"FrameOptions.envs: expected indices of environments, 'all' or None, found {shown(envs)}")


def _effects(argument: str, effects: object) -> tuple[str, ...] | str:
    known = get_args(Effect)
    if isinstance(effects, str) and effects == "all":
        return effects
    if isinstance(effects, str) or not isinstance(effects, Sequence):
        raise InvalidArgument(f"{argument}: expected a list of some of {known}, or 'all', found {shown(effects)}")
    for effect in effects:
        one_of(argument, effect, known)
    return tuple(effects)


def _times(size: Size) -> str:
    return size if isinstance(size, str) else f"{size[0]}x{size[1]}"


def _joined(effects: Effects) -> str:
    return effects if isinstance(effects, str) else ",".join(effects)
