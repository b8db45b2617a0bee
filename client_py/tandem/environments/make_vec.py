"""`make_vec`: environments in processes of their own: tasks of an engine, or any of Gymnasium's."""

# For help(), which prints annotations that are no texts in full.
from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, TypeVar, overload

import gymnasium
from gymnasium.envs.registration import EnvSpec, _find_spec

from tandem.arguments import integer, one_of, shown, text
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine import program
from tandem.engine.options import (
    EngineOptions,
    FrameOptions,
    ImageOptions,
    Size,
    TaskOptions,
    WorkerOptions,
    group_of,
    side_of,
)
from tandem.engine.process import launch_engine
from tandem.engine.refusals import WRITE_INSTEAD, nearest
from tandem.engine.worker_environment import RUN_ID_VARIABLE, WorkerSettings
from tandem.environments.client_vector import ClientVectorEnv
from tandem.environments.own_rewards import OwnRewardsVectorEnv
from tandem.environments.python_backend import EnvFn, function_of_id, limited, start_workers
from tandem.environments.registration import OTHER_TASK, TASKS
from tandem.environments.restart import RestartingVectorEnv
from tandem.environments.transition import OwnFunctions
from tandem.environments.vector import SharedMemoryVectorEnv
from tandem.environments.worker_vector import WorkerVectorEnv, functions_of
from tandem.errors import InvalidArgument, Unsupported

Mode = AutoresetMode | gymnasium.vector.AutoresetMode | str
_JOB_FRAMES = (320, 240)  # of each environment, in a job that asks for frames
_Group = TypeVar("_Group", EngineOptions, WorkerOptions, TaskOptions)


@overload
def make_vec(task: EnvFn | Sequence[EnvFn], num_envs: int | None = None, **options: Any) -> WorkerVectorEnv: ...
@overload
def make_vec(
    task: str, num_envs: int | None = None, *, backend: Literal["python"], **options: Any
) -> WorkerVectorEnv: ...
@overload
def make_vec(task: str, num_envs: int | None = None, *, engine: WorkerOptions, **options: Any) -> WorkerVectorEnv: ...
# Another id that is no task of Tandem is a WorkerVectorEnv, too; backend="python" says so to type checkers.
@overload
def make_vec(task: str | None = None, num_envs: int | None = None, **options: Any) -> SharedMemoryVectorEnv: ...
def make_vec(
    task: str | EnvFn | Sequence[EnvFn] | None = None,
    num_envs: int | None = None,
    *,
    backend: str | None = None,
    num_workers: int | None = None,
    threads: int = 0,
    autoreset_mode: Mode = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    frames: FrameOptions | Size | None = None,
    images: ImageOptions | Size | None = None,
    model: str | os.PathLike[str] | None = None,
    engine: EngineOptions | WorkerOptions | None = None,
    options: TaskOptions | None = None,
    **task_options: object,
) -> ClientVectorEnv:
    """Starts processes with environments, and returns these; `close`, or the end of this process, ends the processes.

    Tandem's tasks run in C++, all others in Python (docs/environments.md). `reset(seed=s)` seeds environment i by s+i.

    >>> import tandem
    >>> envs = tandem.make_vec("CartPole-v1", num_envs=3)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    >>> obs.shape, rewards
    ((3, 4), array([1., 1., 1.]))
    >>> envs.close()

    Args:
      task: A task of Tandem, such as "Ant-v5"; an id of Gymnasium, or "module:id"; or functions that make environments.
      num_envs: Number of environments; None: 1, or the number of functions.
      backend: "native": an id's task in C++; "python": Gymnasium's environment; None: C++ if there is such a task.
      num_workers: Python: processes that share the environments; None: as many as cores and environments allow.
      threads: C++: threads that step the environments; 0: as many as cores and environments allow.
      autoreset_mode: When an ended episode is followed by the next: a `gymnasium.vector.AutoresetMode`, or its value.
      render_mode: C++: "rgb_array": `render` draws every environment, as Gymnasium draws it. Python: the environment's.
      frames: A size, or `FrameOptions`: viewers show the environments. C++: without a render mode; Python: with one.
        None: 320x240 in a job of the daemon that asks for frames, otherwise none.
      images: C++: a size such as (64, 64), or `ImageOptions`: each step also draws each environment. Observations are
        then dicts of "image", uint8[num_envs, height, width, 3], and "state".
      model: C++: an MJCF file to simulate in place of a task.
      engine: C++: `EngineOptions`; Python: `WorkerOptions`: restart, time-outs, waiting and more.
      options: `TaskOptions`: time limit, copies, dtype, rewards of your own.
      task_options: C++: options of the task (docs/tasks.md), such as ctrl_cost_weight=0.1; `render`'s width and height.
        Python: keyword arguments of the environment, or of the functions.

    Raises:
      InvalidArgument: An unknown task or option, or an invalid value; the message names the nearest.
      Unsupported: An unsupported render mode.
      EngineStartFailed: The processes did not start for another reason; the message has a log's end, or a traceback.
    """
    for name, value in task_options.items():
        if name in WRITE_INSTEAD:
            raise InvalidArgument(
                f"{name}: expected an option of the task, found {shown(value)}; use {WRITE_INSTEAD[name]}; an "
                "environment's own argument of this name is written options=tandem.TaskOptions(kwargs={...})"
            )
    mode = autoreset_mode_of(autoreset_mode)
    its = _group("options", options, TaskOptions)
    server = engine.server if isinstance(engine, EngineOptions) else None
    task, spec = _resolved(task, backend, has_server=server is not None)
    keywords = {**(its.kwargs or {}), **task_options}
    asked = _Asked(num_envs, num_workers, threads, mode, render_mode, frames, images, model, engine, its, keywords)
    if spec is not None or not isinstance(task, str | None):
        _refuse("of environments in Python; num_workers=... is the number of their processes", threads=threads or None)
        _refuse("of environments in Python; omit it", model=model, images=images)
        return _make_workers(task if spec is None else spec, asked)
    _refuse("of a task in C++; threads=... is the number of threads that step it", num_workers=num_workers)
    if (task is None) == (model is None) and (task is not None or server is None):
        raise InvalidArgument(
            f"task, model: expected one of them, found {'neither' if task is None else 'both'}; "
            "pass a task such as 'Ant-v5', or model='robot.xml'; an engine of your own, by EngineOptions(server=...), "
            "needs neither"
        )
    if task is not None:
        task = text("task", task).removeprefix("tandem/")  # the prefix in Gymnasium's registry
    envs = _make_engine(task, asked)
    names = ("render_mode", "frames", "images", "engine")
    others = {"backend": backend, "threads": threads or None, "options": options}
    others |= {name: getattr(asked, name) for name in names}
    envs.spec = _spec(task, its, {"num_envs": envs.num_envs, "autoreset_mode": mode, **task_options}, others)
    return envs


# Of `make_vec`: a misspelled one arrives among the task's options.
_KEYWORDS = ("task", "num_envs", *(make_vec.__kwdefaults__ or {}), "width", "height")


def make_registered(
    task: Any, num_envs: int, *, max_episode_steps: int | None = None, options: TaskOptions | None = None, **others: Any
) -> ClientVectorEnv:
    """Is the `vector_entry_point` of an id: `gymnasium.make_vec` passes the time limit of the registration.

    `task` and the other arguments are those of `make_vec`; the limit of `options` comes before the registration's.
    """
    its = _group("options", options, TaskOptions)
    if its.max_episode_steps is None:
        its = dataclasses.replace(its, max_episode_steps=max_episode_steps)
    envs: ClientVectorEnv = make_vec(task, num_envs, options=its, **others)
    return envs


def list_tasks() -> list[str]:
    """Returns the names of the tasks that run in C++; `gymnasium.registry` has the ids of environments in Python.

    >>> list_tasks()[:2]
    ['Ant-v5', 'CartPole-v1']
    """
    return sorted(TASKS)


def cores_argument(task: Any, backend: str | None, num_envs: int, cores: int) -> dict[str, int]:
    """Returns the argument of `make_vec` by which so many environments use so many cores.

    A task in C++ has threads, environments in Python have worker processes.
    """
    task, spec = _resolved(task, backend, has_server=False)
    if spec is None and isinstance(task, str | None):
        return {"threads": min(cores, num_envs)}
    return {"num_workers": min(cores, num_envs)}


def _resolved(task: Any, backend: str | None, *, has_server: bool) -> tuple[Any, EnvSpec | None]:
    """Returns the task without a module's name, and the spec of an id that runs in Python; None: C++, or no id."""
    if backend is not None:
        one_of("backend", backend, ("native", "python"))
        if not isinstance(task, str | None) and backend == "native":
            raise InvalidArgument("backend: expected 'python' for functions, which run in Python, found 'native'")
        if task is None and backend == "python":
            raise InvalidArgument("backend: expected None or 'native' without a task, found 'python'; pass an id")
    if not isinstance(task, str) or not task or (has_server and backend != "python"):
        return task, None
    module, _, name = task.rpartition(":")
    if module.startswith("."):
        raise InvalidArgument(f"task: expected a module's full name before ':', found {shown(module)}")
    if module:
        importlib.import_module(module)
    if backend == "native" or (backend is None and name.removeprefix("tandem/") in TASKS):
        return name, None
    try:
        spec = _find_spec(name)  # as gymnasium.make: without a version, the latest one, with a warning
    except gymnasium.error.Error as error:
        if backend is None and program.VARIABLE in os.environ:  # the user's engine has tasks of its own
            return name, None
        expected = "gymnasium.registry" if backend else "tandem.list_tasks() or of gymnasium.registry"
        # A NameNotFound has a suggestion of its own, without a version, and no other facts.
        why = "" if isinstance(error, gymnasium.error.NameNotFound) else f": {str(error).rstrip('.')}"
        near = ""
        if not isinstance(error, gymnasium.error.DeprecatedEnv):  # which names the newer one
            near = nearest(name, [*gymnasium.registry, *(() if backend else TASKS)])
            near = near or "; 'module:id' imports the module that registers an id"
        raise InvalidArgument(f"task: unknown: expected one of {expected}, found {shown(name)}{why}{near}") from None
    is_native = backend is None and spec.id.removeprefix("tandem/") in TASKS
    return spec.id, None if is_native else spec


@dataclasses.dataclass(frozen=True)
class _Asked:
    """The arguments of `make_vec` beside the task; `options` and `keywords` are complete."""

    num_envs: int | None
    num_workers: int | None
    threads: int
    mode: AutoresetMode
    render_mode: str | None
    frames: FrameOptions | Size | None
    images: ImageOptions | Size | None
    model: str | os.PathLike[str] | None
    engine: EngineOptions | WorkerOptions | None
    options: TaskOptions
    keywords: Mapping[str, Any]


def _make_workers(task: Any, asked: _Asked) -> WorkerVectorEnv:
    """Makes the environments of a spec, or of functions; both get the keywords."""
    options, engine = asked.options, _group("engine", asked.engine, WorkerOptions)
    keywords = asked.keywords if asked.render_mode is None else {**asked.keywords, "render_mode": asked.render_mode}
    its = {name: getattr(options, name) for name in ("reward", "terminated", "observation", "dtype")}
    _refuse("of environments in Python, where a wrapper of the environment does this", "TaskOptions.", **its)
    count = None if asked.num_envs is None else integer("num_envs", asked.num_envs, 1, 2**24)
    preload: list[str] = []
    steps = options.max_episode_steps
    if isinstance(task, EnvSpec):
        function, preload = function_of_id(task, keywords, steps)
        env_fns: Sequence[EnvFn] = functions_of(function, count)
    else:
        env_fns = functions_of(task, count)
        made: dict[int, EnvFn] = {id(env_fn): env_fn for env_fn in env_fns}  # each function is pickled once
        if keywords:
            made = {key: functools.partial(env_fn, **keywords) for key, env_fn in made.items()}
        if steps:
            made = {key: functools.partial(limited, env_fn, steps) for key, env_fn in made.items()}
        env_fns = [made[id(env_fn)] for env_fn in env_fns]
    frames = None if asked.frames is None else group_of("frames", asked.frames, FrameOptions)
    client, workers = start_workers(
        env_fns,
        num_workers=asked.num_workers,
        preload=preload,
        mode=asked.mode,
        options=engine,
        frames=_frames_of_job() if frames is None and asked.render_mode == "rgb_array" else frames,
        takes_batches=True,
    )
    return WorkerVectorEnv(client, workers, copy=options.copy, batch_size=engine.batch_size)


def _frames_of_job() -> FrameOptions | None:
    """Returns the frames of a job of the daemon whose configuration asks for some (`tandemctl submit --frames`)."""
    asks = WorkerSettings.read().video_mode in ("grid", "single")
    return FrameOptions(_JOB_FRAMES) if asks and os.environ.get(RUN_ID_VARIABLE) else None


def _make_engine(task: str | None, asked: _Asked) -> SharedMemoryVectorEnv:
    """Makes the environments of an engine, which simulates a task, a model, or what its own program has."""
    options, engine = asked.options, _group("engine", asked.engine, EngineOptions)
    frames, render_mode, mode = asked.frames, asked.render_mode, asked.mode
    functions = OwnFunctions(options.reward, options.terminated, options.observation)
    if functions and engine.restart:
        raise InvalidArgument(
            "EngineOptions.restart: expected False with reward, terminated or observation, found True; PeerGone says "
            "that the engine died: call make_vec again"
        )
    if options.observation is not None and options.dtype is not None:
        raise InvalidArgument(
            f"dtype: expected None with observation, whose arrays have the dtype, found {shown(options.dtype)}; omit it"
        )
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode == "rgb_array"):
        raise Unsupported(f"render_mode: expected None or 'rgb_array', found {shown(render_mode)}")
    rest = dict(asked.keywords)
    size = TASKS.get(task or "", OTHER_TASK).render_size
    width, height = (side_of(name, rest.pop(name, side)) for name, side in zip(("width", "height"), size, strict=True))
    if render_mode is not None:
        if frames is not None:
            raise InvalidArgument(
                f"frames: expected None with a render mode, which draws every environment, found {shown(frames)}; "
                "omit one of them"
            )
        # The same pixels as Gymnasium. `render` reads its frame at once, so two slots are enough.
        frames = FrameOptions((width, height), envs="all", slots=2, effects="all", camera="gymnasium")
    elif frames is None and engine.server is None:
        frames = _frames_of_job()
    images = None if asked.images is None else group_of("images", asked.images, ImageOptions)
    launch = functools.partial(
        launch_engine,
        task,
        num_envs=1 if asked.num_envs is None else asked.num_envs,
        threads=asked.threads,
        model=asked.model,
        timeout=engine.start_timeout,
        server=engine.server,
        flags=engine.flags,
        max_episode_steps=options.max_episode_steps,
        task_options=rest,
        frames=frames,
        images=images,
        grpc=engine.grpc,
    )
    try:
        launched = launch()
    except InvalidArgument as error:
        if render_mode is not None and error.argument in ("frames", *_FRAME_FIELDS):
            raise InvalidArgument(f"render_mode: {error.reason}") from None
        if error.argument in rest and error.known is not None and not nearest(error.argument, error.known):
            raise InvalidArgument(f"{error}{nearest(error.argument, _KEYWORDS)}") from None
        raise
    client = None
    try:
        client = SharedMemoryClient(
            launched.name,
            timeout=engine.timeout,
            attach_timeout=engine.start_timeout,
            wait=engine.wait,
            share_core=engine.share_core,
            autoreset_mode=AutoresetMode.DISABLED if functions else mode,
        )
        its: dict[str, Any] = {"copy": options.copy, "dtype": options.dtype, "render_mode": render_mode}
        if images is not None:  # else those that the engine has anyway
            its["image_keys"] = images.keys if images.in_observation else ()
        if functions:
            return OwnRewardsVectorEnv(client, functions=functions, mode=mode, engine=launched, **its)
        if not engine.restart:
            return SharedMemoryVectorEnv(client, engine=launched, **its)
        its |= {"relaunch": lambda name: launch(name=name), "start_timeout": engine.start_timeout}
        return RestartingVectorEnv(client, engine=launched, **its)
    except BaseException:
        if client is not None:
            client.close()
        launched.close()
        raise


_FRAME_FIELDS = [f"FrameOptions.{each.name}" for each in dataclasses.fields(FrameOptions)]


def _refuse(of_what: str, prefix: str = "", **given: object) -> None:
    """Raises InvalidArgument for the first of these arguments that is given."""
    for name, value in given.items():
        if value is not None:
            raise InvalidArgument(f"{prefix}{name}: expected none, found {shown(value)}: it is no option {of_what}")


def _group(name: str, given: object, kind: type[_Group]) -> _Group:
    """Returns a group of options, or its defaults for None; InvalidArgument: another type."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    runs = {"EngineOptions": " for a task in C++", "WorkerOptions": " for environments in Python"}.get(
        kind.__name__, ""
    )
    raise InvalidArgument(f"{name}: expected tandem.{kind.__name__}{runs}, found {shown(given)}")


def _spec(
    task: str | None, options: TaskOptions, arguments: Mapping[str, Any], others: Mapping[str, Any]
) -> EnvSpec | None:
    """Makes the spec of environments from the arguments of `make_vec`; `others` may be None. None: of a model."""
    if f"tandem/{task}" not in gymnasium.registry:
        return None
    spec = deepcopy(gymnasium.spec(f"tandem/{task}"))
    spec.kwargs.update(arguments, **{name: value for name, value in others.items() if value is not None})
    if options.max_episode_steps is not None:
        spec.max_episode_steps = options.max_episode_steps or -1  # None would be the task's own number
    return spec


def autoreset_mode_of(asked: Mode) -> AutoresetMode:
    """Returns the mode; InvalidArgument: it is none."""
    try:
        return AutoresetMode(asked if isinstance(asked, str) else asked.value)
    except (ValueError, AttributeError):
        modes = [mode.value for mode in AutoresetMode]
        raise InvalidArgument(f"autoreset_mode: expected one of {modes}, found {shown(asked)}") from None
