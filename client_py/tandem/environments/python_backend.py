"""`start_workers`: starts the processes for environments in Python, and attaches to them."""

import functools
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from tandem._native import MAX_FRAME_SIDE, MAX_IMAGES
from tandem.arguments import integer, shown
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine.options import FrameOptions, WorkerOptions, shown_envs, size_of
from tandem.errors import InvalidArgument, Unsupported
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
    num_workers: int | None,
    preload: Sequence[str] = (),
    mode: AutoresetMode,
    options: WorkerOptions,
    frames: FrameOptions | None = None,
    takes_batches: bool = False,
) -> tuple[SharedMemoryClient, WorkerProcesses]:
    """Starts workers for the environments of these functions, and attaches a client to them.

    `preload`: modules that the functions import, and that their pickles do not name. `takes_batches`: whether the
    caller's vector environment has WorkerOptions.batch_size.

    Raises:
      InvalidArgument: An invalid number of workers, a function that cannot be pickled, invalid frames or options.
      Unsupported: This is Windows.
      EngineStartFailed: An environment could not be made.
    """
    if sys.platform == "win32":
        raise Unsupported(
            "environments in Python: expected Linux, whose workers are forked, found Windows; use WSL 2, "
            "gymnasium.vector, or a task of tandem.list_tasks()"
        )
    if not isinstance(options, WorkerOptions):
        raise InvalidArgument(f"engine: expected tandem.WorkerOptions, found {shown(options)}")
    if options.batch_size is not None and not takes_batches:
        raise InvalidArgument(
            f"WorkerOptions.batch_size: expected None, found {options.batch_size}; tandem.make_vec has batches"
        )
    most = len(env_fns)
    if num_workers is None:
        num_workers = min(most, len(os.sched_getaffinity(0)))
    num_workers = integer("num_workers", num_workers, 1, most, ", the number of environments")
    pickles = _pickled(env_fns)
    modules = {*preload, *(module for each in set(pickles) for module in modules_of(each))}
    workers = WorkerProcesses(
        pickles,
        num_workers,
        options,
        preload=sorted(module for module in modules if module.partition(".")[0] in _SHARED),
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
            share_core=options.share_core,
            autoreset_mode=mode,
        )
    except BaseException:
        workers.close()
        raise
    return client, workers


def _frame_plan(frames: FrameOptions, num_envs: int, num_workers: int) -> FramePlan | None:
    """Returns the plan for these options; None: nothing is shown.

    InvalidArgument: An unknown environment, a number out of its range, or an option of engines in C++.
    """
    if frames.effects or frames.camera != "follow":
        raise InvalidArgument(
            "FrameOptions.effects, camera: expected the defaults for environments in Python, which draw themselves, "
            f"found {frames.effects!r} and {frames.camera!r}; keywords of make_vec are the environment's own options"
        )
    envs = shown_envs(frames, num_envs)
    if envs is None:
        return None
    envs = range(num_envs) if envs == "all" else envs
    indices = tuple(integer(f"FrameOptions.envs[{at}]", env, 0, num_envs - 1) for at, env in enumerate(envs))
    integer("FrameOptions.envs: number", len(indices), 1, MAX_IMAGES)
    width, height = size_of("FrameOptions.size", frames.size)
    plan = FramePlan(width, height, indices, frames.hz, frames.priority == "complete", frames.slots, num_workers)
    rows, columns = plan.grid
    frame_width, frame_height = columns * width, rows * height
    if max(frame_width, frame_height) > MAX_FRAME_SIDE:
        raise InvalidArgument(
            f"frames: expected a frame with sides of at most {MAX_FRAME_SIDE}, found {frame_width}x{frame_height} for "
            f"{len(indices)} environments of {width}x{height}; show fewer or smaller ones"
        )
    return plan


def function_of_id(
    spec: EnvSpec, keywords: Mapping[str, Any], max_episode_steps: int | None
) -> tuple[EnvFn, list[str]]:
    """Returns the function that makes the environment of a spec, and the modules that it imports."""
    arguments = dict(keywords)
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
