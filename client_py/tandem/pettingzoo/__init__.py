"""Environments of PettingZoo in worker processes, as one vector environment with a row for each agent.

    envs = tandem.pettingzoo.parallel_vec(mpe2.simple_spread_v3.parallel_env, 8)

SuperSuit's `concat_vec_envs_v1(pettingzoo_env_to_vec_env_v1(env), 8)` has the same rows.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from tandem import client
from tandem.arguments import integer
from tandem.engine.options import WorkerOptions
from tandem.environments.make_vec import autoreset_mode_of
from tandem.environments.python_backend import start_workers
from tandem.environments.worker_vector import functions_of
from tandem.pettingzoo.joint_env import JointEnv
from tandem.pettingzoo.parallel_vector import JointVectorEnv, ParallelVectorEnv

__all__ = ["ParallelVectorEnv", "parallel_vec"]


def parallel_vec(
    env_fn: Callable[[], Any] | Sequence[Callable[[], Any]],
    num_envs: int | None = None,
    *,
    num_workers: int | None = None,
    autoreset_mode: client.AutoresetMode | gymnasium.vector.AutoresetMode | str = client.AutoresetMode.SAME_STEP,
    engine: WorkerOptions | None = None,
) -> ParallelVectorEnv:
    """Starts workers with ParallelEnvs; `close`, or the end of this process, ends them.

    `env_fn` returns a `pettingzoo.ParallelEnv`, or is a sequence of such functions. All its agents have equal spaces:
    Box, Discrete, MultiDiscrete, MultiBinary, or Dict or Tuple of them. Each of `num_envs` environments has a row for
    every agent; None: 1, or the number of functions. `autoreset_mode`: when the end of an environment is followed by
    its reset; SuperSuit has SAME_STEP. `num_workers`, `engine` and other errors are those of `tandem.make_vec`.

    Raises:
      EngineStartFailed: An environment could not be made; the message has the traceback. Also: it is no ParallelEnv, or
        its agents have different spaces.
      InvalidArgument: An invalid argument, or environments with different agents.
    """
    count = None if num_envs is None else integer("num_envs", num_envs, 1, 2**24)
    env_fns = functions_of(env_fn, count, argument="env_fn")
    # One object for each function, by its id: start_workers pickles each object once.
    joint_fns: dict[int, Callable[[], JointEnv]] = {}
    for each in env_fns:
        joint_fns.setdefault(id(each), functools.partial(JointEnv, each))
    attached, workers = start_workers(
        [joint_fns[id(each)] for each in env_fns],
        num_workers=num_workers,
        mode=autoreset_mode_of(autoreset_mode),
        options=WorkerOptions() if engine is None else engine,
    )
    joint = JointVectorEnv(attached, workers)
    try:
        return ParallelVectorEnv(joint)
    except BaseException:
        joint.close()
        raise
