"""`make_vec`: Gymnasium's environments in an engine process of their own."""

import functools
import inspect
import os
import re
from copy import deepcopy
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from numpy.typing import DTypeLike

from tandem.arguments import flag, integer, shown, text
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine.options import EngineOptions, FrameOptions, ImageOptions, Size
from tandem.engine.process import EngineProcess, launch_engine
from tandem.environments.registration import OTHER_TASK, TASKS
from tandem.environments.restart import RestartingVectorEnv
from tandem.environments.vector import SharedMemoryVectorEnv
from tandem.errors import InvalidArgument, Unsupported


def make_vec(
    task: str | None = None,
    num_envs: int = 1,
    *,
    threads: int = 0,
    autoreset_mode: AutoresetMode | gymnasium.vector.AutoresetMode | str = AutoresetMode.NEXT_STEP,
    copy: bool = True,
    dtype: "DTypeLike | None" = None,  # quoted for help(), which prints a page of it otherwise
    max_episode_steps: int | None = None,
    model: str | os.PathLike[str] | None = None,
    render_mode: str | None = None,
    frames: FrameOptions | Size | None = None,
    images: ImageOptions | Size | None = None,
    engine: EngineOptions | None = None,
    **task_options: object,
) -> SharedMemoryVectorEnv:
    """Starts an engine and returns its environments; `close`, or the end of this process, ends the engine.

    Environment i of `reset(seed=s)` starts as Gymnasium's environment starts with seed s + i. docs/tasks.md lists the
    differences from Gymnasium.

    >>> import tandem
    >>> envs = tandem.make_vec("CartPole-v1", num_envs=3)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    >>> obs.shape, rewards
    ((3, 4), array([1., 1., 1.]))
    >>> envs.close()

    Args:
      task: Name such as "Ant-v5"; `tandem-engine --list_tasks` prints all.
      num_envs: Number of environments.
      threads: Threads that step the environments; 0: as many as cores and environments allow.
      autoreset_mode: When an ended episode is followed by the next: a `gymnasium.vector.AutoresetMode`, or its value.
      copy: False: observations are the region's own float32 array, which the next step overwrites.
      dtype: Of observations; None: Gymnasium's (float64 for MuJoCo, from the region's float32), float32 if copy=False.
      max_episode_steps: Steps that truncate an episode; 0 or -1: no limit; None: the task's own number.
      model: An MJCF file to simulate in place of a task.
      render_mode: "rgb_array": `render` draws every environment, as Gymnasium draws it.
      frames: A size such as (320, 240), or `FrameOptions`: viewers show the environments. Not with a render mode.
      images: A size such as (64, 64), or `ImageOptions`: each step also draws each environment, into `client.images`.
      engine: `EngineOptions`: restart, time-outs, waiting, the engine's program.
      task_options: The keyword options of Gymnasium's environment, such as ctrl_cost_weight=0.1; width and height of
        the images of `render`, Gymnasium's by default.

    Raises:
      InvalidArgument: An unknown task or option, or an invalid value; the message names the nearest.
      Unsupported: An unsupported render mode.
      EngineStartFailed: The engine did not start for another reason; the message has the end of its log.
    """
    given = dict(locals())
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode == "rgb_array"):
        raise Unsupported(f"render_mode: expected None or 'rgb_array', found {shown(render_mode)}")
    if (task is None) == (model is None):
        raise InvalidArgument(
            f"task, model: expected one of them, found {'neither' if task is None else 'both'}; "
            "pass a task such as 'Ant-v5', or model='robot.xml'"
        )
    if task is not None:
        task = text("task", task).removeprefix("tandem/")  # the prefix in Gymnasium's registry
    flag("copy", copy, after="")
    engine_options = EngineOptions() if engine is None else engine
    if not isinstance(engine_options, EngineOptions):
        raise InvalidArgument(f"engine: expected tandem.EngineOptions, found {shown(engine)}")
    mode = _autoreset_mode(autoreset_mode)
    options = dict(task_options)
    width, height = (
        integer(name, options.pop(name, side), 1)  # type: ignore[arg-type]
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
    launch = functools.partial(
        launch_engine,
        task,
        num_envs=num_envs,
        threads=threads,
        model=model,
        timeout=engine_options.start_timeout,
        server=engine_options.server,
        max_episode_steps=0 if max_episode_steps == -1 else max_episode_steps,  # Gymnasium has -1 for no limit
        task_options=options,
        frames=frames,
        images=images,
    )
    try:
        launched = launch()
    except InvalidArgument as error:
        if render_mode is None:
            raise
        raise InvalidArgument(re.sub(r"^(frames|FrameOptions\.\w+):", "render_mode:", str(error))) from None
    envs = _attached(launched, launch, engine_options, mode, copy=copy, dtype=dtype, render_mode=render_mode)
    envs.spec = _spec(task, {**given, "autoreset_mode": mode})
    return envs


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


def _attached(
    engine: EngineProcess,
    launch: "functools.partial[EngineProcess]",
    options: EngineOptions,
    mode: AutoresetMode,
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
            autoreset_mode=mode,
        )
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


def _autoreset_mode(asked: AutoresetMode | gymnasium.vector.AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(asked if isinstance(asked, str) else asked.value)
    except (ValueError, AttributeError):
        modes = [mode.value for mode in AutoresetMode]
        raise InvalidArgument(f"autoreset_mode: expected one of {modes}, found {shown(asked)}") from None
