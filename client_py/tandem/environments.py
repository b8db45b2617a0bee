"""`make_vec`: Gymnasium's environments in an engine of their own."""

import functools
import inspect
import os
from collections.abc import Sequence
from copy import deepcopy
from typing import Literal

import gymnasium
from numpy.typing import DTypeLike

from tandem.arguments import integer, seconds
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine_process import launch_engine
from tandem.errors import InvalidArgument, Unsupported
from tandem.restart import RestartingVectorEnv
from tandem.vector import SharedMemoryVectorEnv


def make_vec(
    task: str | None = None,
    num_envs: int = 1,
    *,
    autoreset_mode: AutoresetMode | gymnasium.vector.AutoresetMode | str = AutoresetMode.NEXT_STEP,
    copy: bool = True,
    dtype: DTypeLike | None = None,
    threads: int = 0,
    restart: bool = False,
    max_episode_steps: int | None = None,
    model: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    start_timeout: float = 30.0,
    wait: str = "adaptive",
    server: str | os.PathLike[str] | None = None,
    render_mode: str | None = None,
    width: int = 480,
    height: int = 480,
    frames: tuple[int, int] | str | None = None,
    frame_envs: Sequence[int] | Literal["all"] | None = None,
    frame_hz: float = 60.0,
    images: tuple[int, int] | str | None = None,
    image_camera: str | None = None,
    **task_options: object,
) -> SharedMemoryVectorEnv:
    """Starts an engine and returns its environments; `close`, or the end of this process, ends it.

    The environments are Gymnasium's, to the last draw of their random numbers: environment i of `reset(seed=s)` starts
    where Gymnasium's starts with seed s + i. What differs is in docs/tasks.md.

    >>> import tandem
    >>> envs = tandem.make_vec("CartPole-v1", num_envs=3)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs.shape, obs.dtype
    ((3, 4), dtype('float32'))
    >>> obs, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    >>> rewards
    array([1., 1., 1.])
    >>> envs.close()

    Args:
      task: Such as "Ant-v5"; `tandem-engine --list_tasks` prints them all.
      num_envs: Number of environments.
      autoreset_mode: When an ended episode is followed by the next: one of `gymnasium.vector.AutoresetMode`, or its
        value.
      copy: Whether observations are copies, the caller's to keep; else they are the region's own float32 array, which
        the next step overwrites.
      dtype: Of observations; None: Gymnasium's own (float64 for MuJoCo, widened from the region's float32), or float32
        with copy=False.
      threads: Threads that step the environments; 0: as many as cores and environments allow.
      restart: Whether a dead engine is started again; see `RestartingVectorEnv`. If not, its death raises `PeerGone`.
      max_episode_steps: Steps that truncate an episode, -1 or 0: none; None: the task's own number.
      model: An MJCF file to simulate in place of a task.
      timeout: Seconds that a step or reset may take.
      start_timeout: Seconds that the engine may take to start.
      wait: How to wait for results: "adaptive", "spin" or "block"; see `SharedMemoryClient`.
      server: The engine's program; see `launch_engine`.
      render_mode: "rgb_array": `render` draws every environment, as Gymnasium draws it; needs a MuJoCo task.
      width: Of what `render` returns, in pixels.
      height: Likewise.
      frames: Without a render mode: who looks at the run sees environments drawn in this size; see `launch_engine`.
      frame_envs: Which ones; see `launch_engine`.
      frame_hz: How often at most; see `launch_engine`.
      images: (width, height) in pixels: each step also draws every MuJoCo environment, into `client.images`, not into
        the observations; see `launch_engine`.
      image_camera: By which of the model's cameras; see `launch_engine`.
      task_options: The keyword options of Gymnasium's environment, such as ctrl_cost_weight=0.1.

    Returns:
      The environments.

    Raises:
      EngineStartFailed: The engine did not start, as of an unknown task or option; the message has its words.
      InvalidArgument: An argument that cannot be.
      Unsupported: A render mode that there is not.
    """
    given = dict(locals())
    if render_mode not in (None, "rgb_array"):
        raise Unsupported(f"render_mode: expected None or 'rgb_array', found {render_mode!r}")
    renders = render_mode is not None
    if renders and (frames is not None or frame_envs is not None):
        raise InvalidArgument("frames, frame_envs: expected None with a render mode, which draws every environment")
    if max_episode_steps == -1:  # as Gymnasium says it
        max_episode_steps = 0
    if (task is None) == (model is None):
        raise InvalidArgument(f"expected either a task, such as 'Ant-v5', or a model, found {task!r} and {model!r}")
    if isinstance(task, str):
        task = task.removeprefix("tandem/")  # as Gymnasium's registry has it
    timeout, start_timeout = seconds("timeout", timeout), seconds("start_timeout", start_timeout)
    launch = functools.partial(
        launch_engine,
        task,
        num_envs=num_envs,
        threads=threads,
        model=model,
        timeout=start_timeout,
        server=server,
        max_episode_steps=max_episode_steps,
        task_options=task_options,
        frames=(integer("width", width, 1), integer("height", height, 1)) if renders else frames,
        frame_envs="all" if renders else frame_envs,
        frame_hz=frame_hz,
        # As Gymnasium's, to the pixel. `render` takes its frame at once, so that two are plenty.
        frame_slots=2 if renders else 8,
        frame_effects="all" if renders else (),
        frame_camera="gymnasium" if renders else "follow",
        images=images,
        image_camera=image_camera,
    )
    mode = _autoreset_mode(autoreset_mode)
    engine = launch()
    client = None
    try:
        client = SharedMemoryClient(
            engine.name, timeout=timeout, attach_timeout=start_timeout, wait=wait, autoreset_mode=mode
        )
        envs = (
            RestartingVectorEnv(
                client,
                engine=engine,
                relaunch=lambda name: launch(name=name),
                start_timeout=start_timeout,
                copy=copy,
                dtype=dtype,
                render_mode=render_mode,
            )
            if restart
            else SharedMemoryVectorEnv(client, copy=copy, dtype=dtype, render_mode=render_mode, engine=engine)
        )
    except BaseException:
        if client is not None:
            client.close()
        engine.close()
        raise
    if (spec := gymnasium.registry.get(f"tandem/{task}")) is not None:
        # What makes the same environments again; the spec itself has the task and the limit.
        given["autoreset_mode"] = mode
        others = {
            name: given[name]
            for name, parameter in inspect.signature(make_vec).parameters.items()
            if name not in ("task", "num_envs", "max_episode_steps", "task_options")
            and given[name] is not parameter.default
        }
        envs.spec = deepcopy(spec)
        envs.spec.kwargs.update(num_envs=num_envs, **others, **task_options)
        if max_episode_steps is not None:
            envs.spec.max_episode_steps = max_episode_steps or None
    return envs


def _autoreset_mode(asked: AutoresetMode | gymnasium.vector.AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(asked if isinstance(asked, str) else asked.value)
    except (ValueError, AttributeError):
        modes = [mode.value for mode in AutoresetMode]
        raise InvalidArgument(f"autoreset_mode: expected one of {modes}, found {asked!r}") from None
