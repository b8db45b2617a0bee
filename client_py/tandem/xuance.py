"""A vector environment for XuanCe. Importing this imports xuance, and so torch.

from tandem.xuance import VecEnv

agent = PPO_Agent(config=config, envs=VecEnv(tandem.make_vec("Ant-v5", 64), seed=1))
"""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray
from xuance.environment.vector_envs.vector_env import AlreadySteppingError, NotSteppingError
from xuance.environment.vector_envs.vector_env import VecEnv as XuanCeVecEnv

from tandem.environments.client_vector import ClientVectorEnv
from tandem.environments.row_infos import infos_of_each
from tandem.errors import InvalidArgument
from tandem.spaces.trees import assign, mapped

__all__ = ["VecEnv"]

Results = tuple[Any, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], list[dict[str, Any]]]


class VecEnv(XuanCeVecEnv):
    """Environments of `tandem.make_vec`, of a task in C++ or in Python, with the interface of XuanCe's `DummyVecEnv`.

    `max_episode_steps` is that of the environments' spec; None: unknown. `buf_obs` has the last observations, which
    XuanCe's agents read: those of the reset where an episode has ended.
    """

    def __init__(self, envs: ClientVectorEnv, *, seed: int | None = None) -> None:
        """Takes the environments over; `close` closes them.

        Args:
          envs: Made with `autoreset_mode="SameStep"`.
          seed: Of the first reset: environment i starts from seed + i.

        Raises:
          InvalidArgument: `envs` has another autoreset mode.
        """
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            mode = envs.autoreset_mode.value
            envs.close()
            raise InvalidArgument(f'envs: expected autoreset_mode="SameStep", as XuanCe resets, found "{mode}"')
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._envs, self._seed = envs, seed
        self.max_episode_steps = None if envs.spec is None else envs.spec.max_episode_steps
        self._steps = np.zeros(envs.num_envs, np.int64)
        self._scores = np.zeros(envs.num_envs)
        self.buf_obs: Any = None
        self.waiting = False

    def reset(self) -> tuple[Any, list[dict[str, Any]]]:
        """Resets all environments; returns observations, and an info for each with "episode_step"."""
        self.buf_obs, infos = self._envs.reset(seed=self._seed)
        self._seed = None
        self._steps[:], self._scores[:] = 0, 0.0
        of_each = infos_of_each(infos, self.num_envs)
        for info in of_each:
            info["episode_step"] = 0
        return self.buf_obs, of_each

    def step_async(self, actions: Any) -> None:
        """Starts a step; AlreadySteppingError: the last one was not received."""
        if self.waiting:
            raise AlreadySteppingError
        self._envs.send(actions)
        self.waiting = True

    def step_wait(self) -> Results:
        """Returns the step's results.

        Returns:
          Observations, of ended episodes the last ones; rewards float32[num_envs]; terminations and truncations
          bool[num_envs]; an info for each environment, with "episode_step", "episode_score" and, at the end of an
          episode, "reset_obs", the first observation of the next.

        Raises:
          NotSteppingError: No step was started.
          TandemError: As `recv` of the environments.
        """
        if not self.waiting:
            raise NotSteppingError
        self.waiting = False
        obs, rewards, terminations, truncations, infos = self._envs.recv()
        self.buf_obs = obs
        ended = terminations | truncations
        self._steps += 1
        self._scores += rewards
        final = infos.pop("final_obs", None)
        infos.pop("_final_obs", None)
        of_each = infos_of_each(infos, self.num_envs)
        for info, step, score in zip(of_each, self._steps.tolist(), self._scores.tolist(), strict=True):
            info["episode_step"], info["episode_score"] = step, score
        if ended.any():
            first = list(iterate(self._envs.observation_space, obs))
            obs = mapped(np.copy, obs)
            for index in np.flatnonzero(ended):
                of_each[index]["reset_obs"] = first[index]
                assign(obs, index, final[index])
            self._steps[ended], self._scores[ended] = 0, 0.0
        return obs, rewards.astype(np.float32), terminations, truncations, of_each

    def close_extras(self) -> None:
        """Closes the environments; `close` calls this."""
        self._envs.close()

    def render(self, mode: str) -> Any:
        """Returns what `render` of each environment returns; `mode` has no effect."""
        return self._envs.render()
