"""`SharedMemoryVecEnv`: an engine's environments as a Stable-Baselines3 VecEnv. Importing this imports torch."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from tandem.errors import InvalidArgument, Unsupported


class SharedMemoryVecEnv(VecEnv):
    """A Stable-Baselines3 VecEnv; `SharedMemoryVectorEnv.as_sb3` makes one.

    infos[i] has the task's own infos and, at an episode's end, "terminal_observation", "TimeLimit.truncated" and, in
    `reset_infos`, the next episode's infos.
    """

    def __init__(self, envs: Any) -> None:
        """Takes over environments whose autoreset mode is SAME_STEP; `as_sb3` changes it.

        Args:
          envs: A `SharedMemoryVectorEnv`; `close` closes it.

        Raises:
          InvalidArgument: They are wrapped, or have another autoreset mode.
        """
        is_bare = isinstance(envs, VectorEnv) and not isinstance(envs, VectorWrapper)
        if not is_bare or not hasattr(envs, "recv"):
            raise InvalidArgument(
                f"envs: expected what make_vec returned, found a {type(envs).__name__}; call as_sb3() before any "
                "wrapper, and use the wrappers of Stable-Baselines3 then, such as VecMonitor and VecNormalize"
            )
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise InvalidArgument(
                f"envs: expected SAME_STEP autoreset, found {envs.autoreset_mode.name}; envs.as_sb3() changes it"
            )
        self._envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.metadata = envs.metadata

    def reset(self) -> VecEnvObs:
        """Starts new episodes from the seeds that `seed` gave; returns their observations, [num_envs, obs_size]."""
        if any(self._options):
            self._reset_options()
            raise Unsupported(
                "set_options: expected none, as an engine's environments take none at a reset, found some"
            )
        # None where `seed` set none: the random stream of that environment continues.
        obs, infos = self._envs.reset(seed=self._seeds)
        self.reset_infos = _by_environment(infos, self.num_envs)
        self._reset_seeds()
        return obs

    def step_async(self, actions: np.ndarray[Any, Any]) -> None:
        """Starts a step; the actions are those of `SharedMemoryVectorEnv.step`."""
        self._envs.send(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Returns obs [num_envs, obs_size], rewards float32[num_envs], dones bool[num_envs], and infos of each."""
        obs, rewards, terminations, truncations, infos = self._envs.recv()
        dones = terminations | truncations
        final_obs = infos.pop("final_obs", None)
        final_infos = infos.pop("final_info", {})
        restarted = infos.pop("engine_restarted", None)
        each = _by_environment(infos, self.num_envs)
        if final_obs is not None:
            of_ended = _by_environment(final_infos, self.num_envs)
            for index in np.flatnonzero(dones):
                self.reset_infos[index] = each[index]
                each[index] = {
                    **of_ended[index],
                    "terminal_observation": final_obs[index],
                    "TimeLimit.truncated": bool(truncations[index] and not terminations[index]),
                }
        for index in np.flatnonzero(~dones):
            each[index]["TimeLimit.truncated"] = False
        if restarted is not None:
            for of_one in each:
                of_one["engine_restarted"] = True
        return obs, rewards.astype(np.float32), dones, each

    def get_images(self) -> Sequence[np.ndarray[Any, Any] | None]:
        """Returns an image of every environment, uint8[height, width, 3]; None for each without a render mode."""
        return self._envs.render() or [None] * self.num_envs

    def close(self) -> None:
        """Closes the environments, and their engine. A second call has no effect."""
        self._envs.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Returns `SharedMemoryVectorEnv.get_attr` of the chosen environments, or an attribute that all share."""
        try:
            values = self._envs.get_attr(attr_name)
        except Unsupported:
            values = (getattr(self._envs, attr_name),) * self.num_envs
        return [values[index] for index in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Raises Unsupported: an engine's environments have no attributes to set."""
        self._envs.set_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Raises Unsupported: an engine's environments have no methods to call."""
        raise Unsupported(
            f"env_method({method_name!r}): the environments are in the engine's process, not Python objects; "
            "make_vec takes the task's options"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Returns False for each chosen environment: no environment is wrapped."""
        return [False] * len(list(self._get_indices(indices)))


def _by_environment(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Turns arrays under names into one dictionary for each environment."""
    each: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for name, values in infos.items():
        if f"_{name}" not in infos:
            continue
        for index in np.flatnonzero(infos[f"_{name}"]):
            each[index][name] = values[index]
    return each
