"""`Transition`: the argument of the trainer's functions for rewards, terminations and observations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.arguments.arrays import described
from tandem.errors import InvalidArgument

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Transition:
    """A step of all environments. Its arrays are read-only views, which the next step or reset overwrites.

    Attributes:
      obs: The engine's observations after the step, float32[num_envs, obs_size].
      previous_obs: Those before the step.
      actions: float32[num_envs, act_size]; a discrete action is one number. 0 in rows that were not stepped.
      state: The engine's infos after the step, by name: float64[num_envs] or [num_envs, ...]. With the option
        state=("qpos", "xpos") of a MuJoCo task or model it has these arrays of mjData; xpos is [num_envs, bodies, 3].
      previous_state: The same before the step. In the first step of an episode, infos that a reset does not set have
        their values of the previous episode.
      rewards: The engine's own, float32[num_envs].
      terminations: The engine's own, bool[num_envs].
      truncations: Whether the episode has reached `max_episode_steps`, bool[num_envs].
      steps: Number of steps of the episode, including this one, int64[num_envs].
      stepped: bool[num_envs]. False: the environment was reset, or is not among `env_ids`; rewards and terminations of
        this row have no effect. Where it was reset, `previous_obs` and `previous_state` are those after the reset.
    """

    obs: NDArray[np.float32]
    previous_obs: NDArray[np.float32]
    actions: NDArray[np.float32]
    state: Mapping[str, NDArray[np.float64]]
    previous_state: Mapping[str, NDArray[np.float64]]
    rewards: NDArray[np.float32]
    terminations: Mask
    truncations: Mask
    steps: NDArray[np.int64]
    stepped: Mask


Function = Callable[[Transition], ArrayLike]


@dataclass(frozen=True)
class OwnFunctions:
    """The user's functions. Each is called once a step, with all environments; `observation` also after resets.

    `reward` returns numbers[num_envs], `terminated` bool[num_envs], `observation` numbers[num_envs, ...]; in place of
    None: what the engine has.
    """

    reward: Function | None = None
    terminated: Function | None = None
    observation: Function | None = None

    def __bool__(self) -> bool:
        """Returns whether there is any."""
        return any(function is not None for function in vars(self).values())

    def rewards_of(self, transition: Transition, engines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns float64[num_envs], the caller's to keep; 0 in rows that were not stepped. `engines` are the engine's.

        Raises:
          InvalidArgument: The function returned another shape or dtype, or numbers that are not finite.
          Exception: What the function raises.
        """
        if self.reward is None:
            return np.where(transition.stepped, engines, 0.0)
        found = np.asarray(self.reward(transition))
        num_envs = len(transition.stepped)
        if found.shape != (num_envs,) or found.dtype.kind not in "fiub":
            raise _wrong("reward", f"a number for each environment, such as float64[{num_envs}]", found)
        rewards = np.where(transition.stepped, found.astype(np.float64), 0.0)
        if not np.isfinite(rewards).all():
            env_id = int(np.argmin(np.isfinite(rewards)))
            raise InvalidArgument(
                f"reward: expected finite numbers, found {rewards[env_id]} for environment {env_id}; {_GO_ON}"
            )
        return rewards

    def terminations_of(self, transition: Transition, engines: Mask) -> Mask:
        """Returns bool[num_envs], the caller's to keep; False in rows that were not stepped.

        Errors are those of `rewards_of`; `engines` are the engine's terminations.
        """
        if self.terminated is None:
            return engines & transition.stepped
        found = np.asarray(self.terminated(transition))
        if found.shape != transition.stepped.shape or found.dtype != np.bool_:
            raise _wrong("terminated", f"bool[{len(transition.stepped)}]", found)
        return found & transition.stepped

    def observations_of(self, transition: Transition, like: NDArray[Any] | None = None) -> NDArray[Any]:
        """Returns numbers[num_envs, ...], the caller's to keep: what `observation` returns, also after a reset.

        `like` has the expected shape and dtype; None: this is the first call. Errors are those of `rewards_of`.
        """
        assert self.observation is not None
        found = np.array(self.observation(transition))
        num_envs = len(transition.stepped)
        if like is None and (found.ndim == 0 or len(found) != num_envs or found.dtype.kind not in "fiub"):
            expected = f"numbers with a row for each environment, [{num_envs}, ...]"
            raise _wrong("observation", expected, found, "correct the function, then call make_vec again")
        if like is not None and (found.shape != like.shape or found.dtype != like.dtype):
            raise _wrong("observation", f"{described(like)} as in its first call", found)
        return found


_GO_ON = "the step or reset was made, and its results are lost; correct the function, then call reset() or step()"


def _wrong(name: str, expected: str, found: NDArray[Any], what_to_do: str = _GO_ON) -> InvalidArgument:
    return InvalidArgument(
        f"{name}: expected a function that returns {expected}, found {described(found)}; {what_to_do}"
    )
