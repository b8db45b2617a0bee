"""`start_workers`: starts the processes for environments in Python, and attaches to them."""

import functools
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from tandem._native import MAX_FRAME_SIDE, MAX_IMAGES
from tandem.arguments import integer, shown
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine.options import EngineOptions, FrameOptions, shown_envs, size_of
from tandem.errors import InvalidArgument
from tandem.workers.frames import FramePlan
from tandem.workers.pickled import modules_of, pickled
from tandem.workers.processes import WorkerProcesses

# Packages that are imported before the workers are forked, which then share them: importing them starts no threads, and
# makes nothing that each process must make for itself, such as a random generator, a connection or a display.
_SHARED = ("gymnasium", "numpy", "stable_baselines3", "torch")

EnvFn = Callable[[], gymnasium.Env[Any, Any]]


def start_workers(
    env_fns: Sequence[EnvFn],
    *,
    num_workers: int | None = None,
    restarts: bool = False,
    preload: Sequence[str] = (),
    mode: AutoresetMode = AutoresetMode.NEXT_STEP,
    options: EngineOptions,
    frames: FrameOptions | None = None,
) -> tuple[SharedMemoryClient, WorkerProcesses]:
    """Starts workers for the environments of these functions, and attaches a client to them.

    `preload`: modules that the functions import, and that their pickles do not name.

    Raises:
      InvalidArgument: An invalid number of workers, a function that cannot be pickled, invalid frames, or options of
        engines.
      EngineStartFailed: An environment could not be made.
    """
    _check_options(options)
    most = len(env_fns)
    if num_workers is None:
        num_workers = min(most, len(os.sched_getaffinity(0)))
    num_workers = integer("num_workers", num_workers, 1, most, ", the number of environments")
    pickles = _pickled(env_fns)
    modules = {*preload, *(module for each in set(pickles) for module in modules_of(each))}
    workers = WorkerProcesses(
        pickles,
        num_workers,
        preload=sorted(module for module in modules if module.partition(".")[0] in _SHARED),
        restarts=restarts,
        info_bytes=options.info_bytes,
        object_bytes=options.object_bytes,
        wait_strategy=options.wait,
        start_timeout=options.start_timeout,
        call_timeout=options.timeout if options.call_timeout is None else options.call_timeout,
        frames=None if frames is None else _frame_plan(frames, most, num_workers),
    )
    try:
        if workers.fields.pickled:
            warnings.warn(
                f"{', '.join(workers.fields.pickled)}: values of these spaces are pickled in each step, which takes "
                "longer; a wrapper could return arrays instead",
                stacklevel=4,
            )
        client = SharedMemoryClient(
            workers.name,
            timeout=options.timeout,
            attach_timeout=options.start_timeout,
            wait=options.wait,
            autoreset_mode=mode,
        )
    except BaseException:
        workers.close()
        raise
    return client, workers


def _check_options(options: object) -> None:
    if not isinstance(options, EngineOptions):
        raise InvalidArgument(f"engine: expected tandem.EngineOptions, found {shown(options)}")
    if options.restart:
        raise InvalidArgument(
            "EngineOptions.restart: expected False for environments in Python, found True; use restart_workers=True"
        )
    for name, default in (("server", None), ("flags", ())):
        if (found := getattr(options, name)) != default:
            raise InvalidArgument(
                f"EngineOptions.{name}: expected {default!r} for environments in Python, which workers step, found "
                f"{shown(found)}; omit it"
            )


def _frame_plan(frames: FrameOptions, num_envs: int, num_workers: int) -> FramePlan | None:
    """Returns the plan for these options; None: nothing is shown.

    Raises:
      InvalidArgument: An unknown environment, a number out of its range, or an option of engines in C++.
    """
    if frames.effects or frames.camera != "follow":
        raise InvalidArgument(
            "FrameOptions.effects, camera: expected the defaults for environments in Python, which draw themselves, "
            f"found {frames.effects!r} and {frames.camera!r}; env_kwargs={{...}} has the environment's own options"
        )
    envs = shown_envs(frames, num_envs)
    if envs is None:
        return None
    envs = range(num_envs) if envs == "all" else envs
    indices = tuple(integer(f"FrameOptions.envs[{at}]", env, 0, num_envs - 1) for at, env in enumerate(envs))
    integer("FrameOptions.envs: number", len(indices), 1, MAX_IMAGES)
    width, height = size_of("FrameOptions.size", frames.size)
    plan = FramePlan(width, height, indices, frames.hz, frames.slots, num_workers)
    rows, columns = plan.grid
    frame_width, frame_height = columns * width, rows * height
    if max(frame_width, frame_height) > MAX_FRAME_SIDE:
        raise InvalidArgument(
            f"frames: expected a frame with sides of at most {MAX_FRAME_SIDE}, found {frame_width}x{frame_height} for "
            f"{len(indices)} environments of {width}x{height}; show fewer or smaller ones"
        )
    return plan


def function_of_id(
    spec: EnvSpec, env_kwargs: Mapping[str, Any], render_mode: str | None, max_episode_steps: int | None
) -> tuple[EnvFn, list[str]]:
    """Returns the function that makes the environment of a spec, and the modules that it imports."""
    arguments = dict(env_kwargs)
    if render_mode is not None:
        arguments["render_mode"] = render_mode
    if max_episode_steps is not None:
        arguments["max_episode_steps"] = max_episode_steps or -1  # Gymnasium's number for no limit
    entry_point = spec.entry_point
    modules = [entry_point.partition(":")[0]] if isinstance(entry_point, str) else []
    return functools.partial(gymnasium.make, spec, **arguments), modules


def limited(env_fn: EnvFn, max_episode_steps: int) -> gymnasium.Env[Any, Any]:
    """Makes an environment whose episodes are truncated."""
    return gymnasium.wrappers.TimeLimit(env_fn(), max_episode_steps)


def _pickled(env_fns: Sequence[EnvFn]) -> list[bytes]:
    """Returns a pickle of each function; equal functions share one object."""
    pickles: dict[int, bytes] = {}
    for index, env_fn in enumerate(env_fns):
        if id(env_fn) not in pickles:
            try:
                pickles[id(env_fn)] = pickled(env_fn)
            except Exception as error:  # of any object's __reduce__
                raise InvalidArgument(
                    f"env_fns[{index}]: expected a function that cloudpickle can pickle, found {shown(env_fn)}: "
                    f"{type(error).__name__}: {error}; make what cannot be pickled inside the function"
                ) from error
    return [pickles[id(env_fn)] for env_fn in env_fns]
