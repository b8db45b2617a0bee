"""`make_vec`: environments in processes of their own: tasks of an engine, or any of Gymnasium's."""

# For help(), which prints annotations that are no texts in full.
from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, overload

import gymnasium
from gymnasium.envs.registration import EnvSpec, _find_spec
from numpy.typing import DTypeLike

from tandem.arguments import flag, integer, one_of, shown, text
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine import program
from tandem.engine.options import EngineOptions, FrameOptions, ImageOptions, Size, group_of, side_of
from tandem.engine.process import EngineProcess, launch_engine
from tandem.engine.refusals import advice, nearest
from tandem.environments.client_vector import ClientVectorEnv
from tandem.environments.own_rewards import OwnRewardsVectorEnv
from tandem.environments.python_backend import EnvFn, function_of_id, limited, start_workers
from tandem.environments.registration import OTHER_TASK, TASKS
from tandem.environments.restart import RestartingVectorEnv
from tandem.environments.transition import Function, OwnFunctions
from tandem.environments.vector import SharedMemoryVectorEnv
from tandem.environments.worker_vector import WorkerVectorEnv, functions_of
from tandem.errors import InvalidArgument, Unsupported


@overload
def make_vec(task: EnvFn | Sequence[EnvFn], num_envs: int | None = None, **options: Any) -> WorkerVectorEnv: ...
@overload
def make_vec(
    task: str, num_envs: int | None = None, *, backend: Literal["python"], **options: Any
) -> WorkerVectorEnv: ...
# An id that is no task of Tandem is a WorkerVectorEnv, too; backend="python" says so to type checkers.
@overload
def make_vec(task: str | None = None, num_envs: int | None = None, **options: Any) -> SharedMemoryVectorEnv: ...
def make_vec(
    task: str | EnvFn | Sequence[EnvFn] | None = None,
    num_envs: int | None = None,
    *,
    backend: str | None = None,
    num_workers: int | None = None,
    restart_workers: bool = False,
    batch_size: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    threads: int = 0,
    autoreset_mode: AutoresetMode | gymnasium.vector.AutoresetMode | str = AutoresetMode.NEXT_STEP,
    copy: bool = True,
    dtype: DTypeLike | None = None,
    max_episode_steps: int | None = None,
    model: str | os.PathLike[str] | None = None,
    reward: Function | None = None,
    terminated: Function | None = None,
    observation: Function | None = None,
    render_mode: str | None = None,
    frames: FrameOptions | Size | None = None,
    images: ImageOptions | Size | None = None,
    grpc: str | None = None,
    engine: EngineOptions | None = None,
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
      restart_workers: Python: a worker that dies is started again, five times in 60 s; False: this raises `PeerGone`.
      batch_size: Python: `recv` returns results of so many environments, those that are ready first.
      env_kwargs: Keyword arguments of an id's environment, or of the functions.
      threads: C++: threads that step the environments; 0: as many as cores and environments allow.
      autoreset_mode: When an ended episode is followed by the next: a `gymnasium.vector.AutoresetMode`, or its value.
      copy: False: observations are the region's own arrays, which the next step overwrites; in C++ float32.
      dtype: C++, of observations; None: Gymnasium's (float64 for MuJoCo, from float32), float32 if copy=False.
      max_episode_steps: Steps that truncate an episode; 0 or -1: no limit; None: the task's own.
      model: C++: an MJCF file to simulate in place of a task.
      reward: C++: a function of a `tandem.vector.Transition` that returns all rewards (docs/tasks.md).
      terminated: C++: the same for terminations, bool[num_envs].
      observation: C++: the same for observations, [num_envs, ...].
      render_mode: "rgb_array": `render` draws every environment, as Gymnasium draws it. Not with a function.
      frames: A size, or `FrameOptions`: viewers show the environments. C++: without a render mode; Python: with one.
      images: C++: a size such as (64, 64), or `ImageOptions`: each step also draws each environment: `client.images`.
      grpc: C++: HOST:PORT, such as "127.0.0.1:50051", for programs for LuckyEngine that only look (docs/grpc.md).
      engine: `EngineOptions`: restart, time-outs, waiting, the engine's program.
      task_options: C++: options of the task (docs/tasks.md), such as ctrl_cost_weight=0.1; `render`'s width and height.

    Raises:
      InvalidArgument: An unknown task or option, or an invalid value; the message names the nearest.
      Unsupported: An unsupported render mode.
      EngineStartFailed: The processes did not start for another reason; the message has a log's end, or a traceback.
    """
    given = dict(locals())
    flag("copy", copy, after="")
    engine_options = EngineOptions() if engine is None else engine
    if not isinstance(engine_options, EngineOptions):
        raise InvalidArgument(f"engine: expected tandem.EngineOptions, found {shown(engine)}")
    if not isinstance(env_kwargs, Mapping | None) or not all(isinstance(name, str) for name in env_kwargs or ()):
        raise InvalidArgument(f"env_kwargs: expected a mapping from names to values, found {shown(env_kwargs)}")
    mode = autoreset_mode_of(autoreset_mode)
    task, spec = _resolved(task, backend, engine_options)
    if spec is not None or not isinstance(task, str | None):
        return _in_python(spec, {**given, "task": task}, mode, engine_options)
    for name, instead in _OF_WORKERS.items():
        _refuse(given, (name,), f"of an engine, which has no worker processes; {instead}")
    functions = _own_functions(reward, terminated, observation, dtype, engine_options)
    num_envs = 1 if num_envs is None else num_envs
    task_options = {**(env_kwargs or {}), **task_options}
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode == "rgb_array"):
        raise Unsupported(f"render_mode: expected None or 'rgb_array', found {shown(render_mode)}")
    if (task is None) == (model is None) and (task is not None or engine_options.server is None):
        raise InvalidArgument(
            f"task, model: expected one of them, found {'neither' if task is None else 'both'}; "
            "pass a task such as 'Ant-v5', or model='robot.xml'; an engine of your own, by EngineOptions(server=...), "
            "needs neither"
        )
    if task is not None:
        task = text("task", task).removeprefix("tandem/")  # the prefix in Gymnasium's registry
    options = dict(task_options)
    width, height = (
        side_of(name, options.pop(name, side))
        for name, side in zip(("width", "height"), TASKS.get(task or "", OTHER_TASK).render_size, strict=True)
    )
    if render_mode is not None:
        if frames is not None:
            raise InvalidArgument(
                f"frames: expected None with a render mode, which draws every environment, found {shown(frames)}; "
                "omit one of them"
            )
        # The same pixels as Gymnasium. `render` reads its frame at once, so two slots are enough.
        frames = FrameOptions((width, height), envs="all", slots=2, effects="all", camera="gymnasium")
    server = engine_options.server
    launch = functools.partial(
        launch_engine,
        task,
        num_envs=num_envs,
        threads=threads,
        model=model,
        timeout=engine_options.start_timeout,
        server=server,
        flags=engine_options.flags,
        max_episode_steps=0 if max_episode_steps == -1 else max_episode_steps,  # Gymnasium has -1 for no limit
        task_options=options,
        frames=frames,
        images=images,
        grpc=grpc,
    )
    try:
        launched = launch()
    except InvalidArgument as error:
        if render_mode is None:
            raise
        raise InvalidArgument(re.sub(r"^(frames|FrameOptions\.\w+):", "render_mode:", str(error))) from None
    arguments = {"copy": copy, "dtype": dtype, "render_mode": render_mode}
    envs = _attached(launched, launch, engine_options, mode, functions, **arguments)
    envs.spec = _spec(task, {**given, "num_envs": num_envs, "task_options": task_options, "autoreset_mode": mode})
    return envs


# Arguments of environments in Python, which an engine has not -> what to do.
_OF_WORKERS = {
    "num_workers": "threads=... is the number of threads that step a task in C++",
    "restart_workers": "engine=tandem.EngineOptions(restart=True) starts a dead engine again",
    "batch_size": "step(actions, env_ids) steps some of its environments",
}


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
    task, spec = _resolved(task, backend, EngineOptions())
    if spec is None and isinstance(task, str | None):
        return {"threads": min(cores, num_envs)}
    return {"num_workers": min(cores, num_envs)}


def _resolved(task: Any, backend: str | None, options: EngineOptions) -> tuple[Any, EnvSpec | None]:
    """Returns the task without a module's name, and the spec of an id that runs in Python; None: C++, or no id."""
    if backend is not None:
        one_of("backend", backend, ("native", "python"))
        if not isinstance(task, str | None) and backend == "native":
            raise InvalidArgument("backend: expected 'python' for functions, which run in Python, found 'native'")
        if task is None and backend == "python":
            raise InvalidArgument("backend: expected None or 'native' without a task, found 'python'; pass an id")
    if not isinstance(task, str) or not task or (options.server is not None and backend != "python"):
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
        reason = str(error).rstrip(".")
        if "Did you mean" not in reason and "Please use" not in reason:
            known = [*gymnasium.registry, *(() if backend else TASKS)]
            reason += nearest(name, known) or "; 'module:id' imports the module that registers an id"
        expected = "gymnasium.registry" if backend else "tandem.list_tasks() or of gymnasium.registry"
        raise InvalidArgument(f"task: unknown: expected one of {expected}, found {shown(name)}: {reason}") from None
    is_native = backend is None and spec.id.removeprefix("tandem/") in TASKS
    return spec.id, None if is_native else spec


def _in_python(
    spec: EnvSpec | None, given: dict[str, Any], mode: AutoresetMode, options: EngineOptions
) -> WorkerVectorEnv:
    """Makes the environments of a spec, or of the functions that `task` is."""
    _refuse(given, ("threads",), "of environments in Python; num_workers=... is the number of their processes")
    _refuse(given, ("model", "images", "grpc"), "of environments in Python")
    own = ("reward", "terminated", "observation", "dtype")
    _refuse(given, own, "of environments in Python, where a wrapper of the environment does this")
    for name, value in given["task_options"].items():
        instead = advice(name).replace("use threads", "use num_workers")
        raise InvalidArgument(
            f"{name}: expected an argument of make_vec, found {shown(value)}{instead}; arguments of environments are "
            f"written env_kwargs={shown(given['task_options'])}"
        )
    flag("restart_workers", given["restart_workers"], after="")
    count = None if given["num_envs"] is None else integer("num_envs", given["num_envs"], 1, 2**24)
    preload: list[str] = []
    if spec is None:
        its = f"env_kwargs={{'render_mode': {shown(given['render_mode'])}}}"
        _refuse(given, ("render_mode",), f"of a function; pass {its}, which the function gets")
        env_fns = functions_of(given["task"], count)
        made: dict[int, EnvFn] = {id(env_fn): env_fn for env_fn in env_fns}  # each function is pickled once
        if given["env_kwargs"]:
            made = {key: functools.partial(env_fn, **given["env_kwargs"]) for key, env_fn in made.items()}
        if (steps := given["max_episode_steps"]) not in (None, 0, -1):
            steps = integer("max_episode_steps", steps, 1)
            made = {key: functools.partial(limited, env_fn, steps) for key, env_fn in made.items()}
        env_fns = [made[id(env_fn)] for env_fn in env_fns]
    else:
        function, preload = function_of_id(
            spec, given["env_kwargs"] or {}, given["render_mode"], given["max_episode_steps"]
        )
        env_fns = functions_of(function, count)
    batch_size = None if given["batch_size"] is None else integer("batch_size", given["batch_size"], 1)
    client, workers = start_workers(
        env_fns,
        num_workers=given["num_workers"],
        restarts=given["restart_workers"],
        preload=preload,
        mode=mode,
        options=options,
        frames=None if given["frames"] is None else group_of("frames", given["frames"], FrameOptions),
    )
    return WorkerVectorEnv(client, workers, copy=given["copy"], batch_size=batch_size)


def _refuse(given: dict[str, Any], names: tuple[str, ...], of_what: str) -> None:
    """Raises InvalidArgument for the first of these arguments of make_vec that has not its default."""
    for name in names:
        default = inspect.signature(make_vec).parameters[name].default
        if given[name] is not default and given[name] != default:
            raise InvalidArgument(
                f"{name}: expected {default!r}, found {shown(given[name])}: it is no option {of_what}"
            )


def _spec(task: str | None, given: dict[str, Any]) -> EnvSpec | None:
    """Makes the spec of environments from the arguments of `make_vec`; None for a model."""
    if f"tandem/{task}" not in gymnasium.registry:
        return None
    spec = deepcopy(gymnasium.spec(f"tandem/{task}"))
    in_spec = ("task", "max_episode_steps", "task_options")
    others = {
        name: given[name]
        for name, parameter in inspect.signature(make_vec).parameters.items()
        if name not in in_spec and given[name] is not parameter.default
    }
    spec.kwargs.update(others, num_envs=given["num_envs"], **given["task_options"])
    if given["max_episode_steps"] is not None:
        spec.max_episode_steps = given["max_episode_steps"] or -1  # None would be the task's own number
    return spec


def _own_functions(
    reward: Function | None,
    terminated: Function | None,
    observation: Function | None,
    dtype: DTypeLike | None,
    options: EngineOptions,
) -> OwnFunctions:
    """Returns the functions; refuses options that need the engine's own rewards and observations."""
    functions = OwnFunctions(reward, terminated, observation)
    if functions and options.restart:
        raise InvalidArgument(
            "EngineOptions.restart: expected False with reward, terminated or observation, found True; PeerGone says "
            "that the engine died: call make_vec again"
        )
    if observation is not None and dtype is not None:
        raise InvalidArgument(
            f"dtype: expected None with observation, whose arrays have the dtype, found {shown(dtype)}; omit it"
        )
    return functions


def _attached(
    engine: EngineProcess,
    launch: functools.partial[EngineProcess],
    options: EngineOptions,
    mode: AutoresetMode,
    functions: OwnFunctions,
    **arguments: Any,
) -> SharedMemoryVectorEnv:
    """Makes the environments of an engine, with further arguments of their class; ends the engine if that fails."""
    client = None
    try:
        client = SharedMemoryClient(
            engine.name,
            timeout=options.timeout,
            attach_timeout=options.start_timeout,
            wait=options.wait,
            autoreset_mode=AutoresetMode.DISABLED if functions else mode,
        )
        if functions:
            return OwnRewardsVectorEnv(client, functions=functions, mode=mode, engine=engine, **arguments)
        if not options.restart:
            return SharedMemoryVectorEnv(client, engine=engine, **arguments)
        return RestartingVectorEnv(
            client,
            engine=engine,
            relaunch=lambda name: launch(name=name),
            start_timeout=options.start_timeout,
            **arguments,
        )
    except BaseException:
        if client is not None:
            client.close()
        engine.close()
        raise


def autoreset_mode_of(asked: AutoresetMode | gymnasium.vector.AutoresetMode | str) -> AutoresetMode:
    """Returns the mode; InvalidArgument: it is none."""
    try:
        return AutoresetMode(asked if isinstance(asked, str) else asked.value)
    except (ValueError, AttributeError):
        modes = [mode.value for mode in AutoresetMode]
        raise InvalidArgument(f"autoreset_mode: expected one of {modes}, found {shown(asked)}") from None
