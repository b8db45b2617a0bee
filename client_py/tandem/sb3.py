"""VecEnvs for Stable-Baselines3. Importing this imports torch.

SharedMemoryVecEnv  what `make_vec(...).as_sb3()` returns
SubprocVecEnv       Stable-Baselines3's class of this name, with Tandem's workers: only the import changes
"""

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from tandem.arguments import one_of
from tandem.engine.options import EngineOptions
from tandem.environments.sb3_vec_env import SharedMemoryVecEnv
from tandem.vector import AsyncVectorEnv

__all__ = ["SharedMemoryVecEnv", "SubprocVecEnv"]


class SubprocVecEnv(SharedMemoryVecEnv):
    """Stable-Baselines3's `SubprocVecEnv` with Tandem's workers: several environments in each process.

    An exception of an environment is `tandem.EnvFailed` with the traceback; a process that dies is `tandem.PeerGone`.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        start_method: str | None = None,
        *,
        num_workers: int | None = None,
        engine: EngineOptions | None = None,
    ) -> None:
        """Starts the workers.

        Args:
          env_fns: A function for each environment.
          start_method: None, or one of `multiprocessing.get_all_start_methods()`. Without effect: workers are new
            programs, and no `if __name__ == "__main__"` is needed.
          num_workers: Worker processes; None: as many as cores and environments allow.
          engine: Time-outs and waiting; None: a step may take 600 s, as for `tandem.vector.AsyncVectorEnv`.

        Raises:
          TandemError: As `tandem.make_vec`.
        """
        if start_method is not None:
            one_of("start_method", start_method, tuple(multiprocessing.get_all_start_methods()))
        super().__init__(
            AsyncVectorEnv(env_fns, autoreset_mode=AutoresetMode.SAME_STEP, num_workers=num_workers, engine=engine)
        )
