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

    infos[i] has the task's own infos and, where an episode ended, "terminal_observation", "TimeLimit.truncated" and the
    next episode's in `reset_infos`.
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
        """Starts a new episode in every environment, from the seeds that `seed` gave.

        Returns:
          Observations, [num_envs, obs_size].
        """
        if any(self._options):
            self._reset_options()
            raise Unsupported(
                "set_options: expected none, as an engine's environments take none at a reset, found some"
            )
        # None where `seed` set none: that environment's random numbers go on.
        obs, infos = self._envs.reset(seed=self._seeds)
        self.reset_infos = _by_environment(infos, self.num_envs)
        self._reset_seeds()
        return obs

    def step_async(self, actions: np.ndarray[Any, Any]) -> None:
        """Starts a step.

        Args:
          actions: As for `SharedMemoryVectorEnv.step`.
        """
        self._envs.send(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for its results.

        Returns:
          Observations [num_envs, obs_size], rewards float32[num_envs], dones bool[num_envs], infos of each environment.
        """
        obs, rewards, terminations, truncations, infos = self._envs.recv()
        dones = terminations | truncations
        final_obs = infos.pop("final_obs", None)
        final_infos = infos.pop("final_info", {})
        for name in ("_final_obs", "_final_info"):
            infos.pop(name, None)
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
        """Draws every environment.

        Returns:
          uint8[height, width, 3] for each; None for each without a render mode.
        """
        return self._envs.render() or [None] * self.num_envs

    def close(self) -> None:
        """Closes the environments, and their engine. Safe twice."""
        self._envs.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Reads what `SharedMemoryVectorEnv.get_attr` has of each environment, or an attribute that all share.

        Args:
          attr_name: Such as "spec" or "render_mode".
          indices: Of the environments; None: all.

        Returns:
          A value for each of them.
        """
        try:
            values = self._envs.get_attr(attr_name)
        except Unsupported:
            values = (getattr(self._envs, attr_name),) * self.num_envs
        return [values[index] for index in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refuses: an engine's environments have no attributes to set.

        Args:
          attr_name: Ignored.
          value: Ignored.
          indices: Ignored.

        Raises:
          Unsupported: Always.
        """
        self._envs.set_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Refuses: an engine's environments have no methods to call.

        Args:
          method_name: Ignored.
          method_args: Ignored.
          indices: Ignored.
          method_kwargs: Ignored.

        Raises:
          Unsupported: Always.
        """
        raise Unsupported(
            f"env_method({method_name!r}): the environments are in the engine's process, not Python objects; "
            "make_vec takes the task's options"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Returns that no environment is wrapped.

        Args:
          wrapper_class: Ignored.
          indices: Of the environments; None: all.

        Returns:
          False for each of them.
        """
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
