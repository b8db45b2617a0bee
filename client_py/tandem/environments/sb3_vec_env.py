"""`SharedMemoryVecEnv`: environments as a Stable-Baselines3 VecEnv. Importing this imports torch."""

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
        options: list[dict[str, Any]] = self._options
        self._reset_options()
        if any(options) and (not self._in_python or any(each != options[0] for each in options)):
            raise Unsupported(
                "set_options: expected "
                + ("the same options for all environments" if self._in_python else "none, as an engine takes none")
                + ", found others"
            )
        # None where `seed` set none: the random stream of that environment continues.
        obs, infos = self._envs.reset(seed=self._seeds, options=dict(options[0]) if any(options) else None)
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
        """Returns an attribute of the chosen environments; in an engine, one of `SharedMemoryVectorEnv.get_attr`."""
        if self._in_python:
            return list(self._envs.call_chosen(self._chosen(indices), attr_name))
        try:
            values = self._envs.get_attr(attr_name)
        except Unsupported:
            values = (getattr(self._envs, attr_name),) * self.num_envs
        return [values[index] for index in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of the chosen environments; Unsupported: they are in an engine."""
        if self._in_python:
            self._envs.set_chosen(self._chosen(indices), attr_name, value)
        else:
            self._envs.set_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of the chosen environments; Unsupported: they are in an engine."""
        if self._in_python:
            return list(self._envs.call_chosen(self._chosen(indices), method_name, *method_args, **method_kwargs))
        raise Unsupported(
            f"env_method({method_name!r}): the environments are in the engine's process, not Python objects; "
            "make_vec takes the task's options"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Returns whether each chosen environment has this wrapper; in an engine none has."""
        if self._in_python:
            return list(self._envs.is_wrapped(wrapper_class, self._chosen(indices)))
        return [False] * len(list(self._get_indices(indices)))

    @property
    def _in_python(self) -> bool:
        return hasattr(self._envs, "call_chosen")

    def _chosen(self, indices: VecEnvIndices) -> list[int]:
        return list(self._get_indices(indices))


def _by_environment(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Turns arrays under names into one dictionary for each environment."""
    each: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for name, values in infos.items():
        if f"_{name}" not in infos:
            continue
        rows = _by_environment(values, num_envs) if isinstance(values, dict) else values
        for index in np.flatnonzero(infos[f"_{name}"]):
            each[index][name] = rows[index]
    return each
