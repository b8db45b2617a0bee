"""`Rollout`: steps of all environments of a worker, in a row; and the arrays into which the worker writes them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tandem.spaces.trees import Tree, assign, leaves, mapped

Mask = NDArray[np.bool_]


class Policy(Protocol):
    """What chooses the actions in a worker. The caller's function makes one from the spaces of one environment."""

    def load(self, weights: Any) -> None:
        """Takes the weights of a newer version; NumPy arrays in them are read-only, and valid while referenced."""

    def act(self, obs: Tree, random: np.random.Generator) -> tuple[Tree, dict[str, NDArray[Any]]]:
        """Chooses an action for each environment.

        `obs` are arrays [num_envs, ...] of the rollout: not to be changed, valid until `act` returns. `random` is this
        worker's: it depends on seed, worker and incarnation alone. Returns an element of the vector environment's
        action space, and arrays [num_envs, ...] to keep in `Rollout.extras`, under the same names in each call.
        """


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """`horizon` steps of all environments of one worker. The arrays are read-only, and valid while referenced.

    An ended episode's last observation is `obs[t + 1]`; step t + 1 is then the reset (`resets`): its action has no
    effect, its reward is 0. This is Gymnasium's NEXT_STEP.

    Attributes:
      worker: The worker's index.
      incarnation: How often it was started before.
      number: Of the rollouts of this incarnation that were requested, from 0.
      version: Of the weights, which `RolloutWorkers.publish` returned; 0: none were published.
      lag: The number of versions that were published since, at its delivery.
      obs: [horizon + 1, num_envs, ...], or dicts and tuples of such arrays; [t + 1] follows step t.
      actions: [horizon, num_envs, ...], in the same way.
      rewards: float64[horizon, num_envs].
      terminations: bool[horizon, num_envs].
      truncations: bool[horizon, num_envs].
      resets: bool[horizon + 1, num_envs]: step t is a reset; the last row is of the next rollout's first step.
      extras: What the policy returned beside the actions: name -> [horizon, num_envs, ...].
      episode_returns: float64[k], of the episodes that ended, in the order of their ends.
      episode_lengths: int64[k], in steps.
    """

    worker: int
    incarnation: int
    number: int
    version: int
    lag: int = 0
    obs: Tree
    actions: Tree
    rewards: NDArray[np.float64]
    terminations: Mask
    truncations: Mask
    resets: Mask
    extras: dict[str, NDArray[Any]]
    episode_returns: NDArray[np.float64]
    episode_lengths: NDArray[np.int64]

    @property
    def steps(self) -> int:
        """The number of steps of all environments, resets included."""
        return self.rewards.size

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        flags = (self.terminations, self.truncations, self.resets)
        arrays = (self.obs, self.actions, self.rewards, flags, self.extras, self.episode_returns, self.episode_lengths)
        return sum(array.nbytes for array in leaves(arrays))


class Episodes:
    """Returns and lengths of episodes, which may continue from one rollout to the next."""

    def __init__(self, num_envs: int) -> None:
        """Takes the number of environments, whose episodes begin now."""
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)

    def ended(self, rewards: NDArray[np.float64], resets: Mask) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Returns float64[k] and int64[k], of the episodes that ended, in the order of their ends.

        `rewards` are float64[horizon, num_envs], of the next steps; `resets` as `Rollout.resets`.
        """
        # Each environment's steps in a row, in parts: one for each episode that ended, and the rest.
        horizon, num_envs = rewards.shape
        env, last = np.nonzero(resets[1:].T)
        ends = env * horizon + last
        begins = np.unique(np.concatenate([np.arange(num_envs) * horizon, ends + 1]))
        begins = begins[begins < rewards.size]
        returns = np.add.reduceat(rewards.T.ravel(), begins)
        lengths = np.add.reduceat(np.logical_not(resets[:-1]).T.ravel(), begins, dtype=np.int64)
        first = np.searchsorted(begins, np.arange(num_envs) * horizon)
        returns[first] += self._returns
        lengths[first] += self._lengths
        # An environment whose last step ends an episode has no rest.
        part = np.searchsorted(begins, ends, side="right") - 1
        rest = np.append(first[1:], len(begins)) - 1
        continues = ~resets[-1]
        self._returns = np.where(continues, returns[rest], 0.0)
        self._lengths = np.where(continues, lengths[rest], 0)
        order = part[np.lexsort((env, last))]
        return returns[order], lengths[order]


class RolloutArrays:
    """The arrays of a worker's rollouts, which each rollout overwrites, and the episodes that continue."""

    def __init__(self, horizon: int, obs: Tree) -> None:
        """Takes the first observations: arrays [num_envs, ...]."""
        self._horizon = horizon
        self.obs = _allocated(horizon + 1, obs)
        assign(self.obs, horizon, obs)
        num_envs = len(next(leaves(obs)))
        self._actions: Tree = None
        self._extras: dict[str, NDArray[Any]] = {}
        self._rewards = np.empty((horizon, num_envs))
        self._terminations = np.empty((horizon, num_envs), np.bool_)
        self._truncations = np.empty((horizon, num_envs), np.bool_)
        self._resets = np.zeros((horizon + 1, num_envs), np.bool_)
        self._episodes = Episodes(num_envs)

    def begin(self) -> None:
        """Begins a rollout with the last observations of the one before."""
        assign(self.obs, 0, self.rows(self._horizon))
        self._resets[0] = self._resets[self._horizon]

    def rows(self, step: int) -> Tree:
        """Returns the observations before a step: views [num_envs, ...]."""
        return mapped(lambda array: array[step], self.obs)

    def write_actions(self, step: int, actions: Tree, extras: dict[str, NDArray[Any]]) -> None:
        """Writes what the policy chose for a step."""
        if self._actions is None:
            self._actions = _allocated(self._horizon, mapped(np.asarray, actions))
            self._extras = _allocated(self._horizon, mapped(np.asarray, extras))
        assign(self._actions, step, actions)
        assign(self._extras, step, extras)

    def write_results(self, step: int, obs: Tree, rewards: Any, terminations: Mask, truncations: Mask) -> None:
        """Writes the results of a step."""
        assign(self.obs, step + 1, obs)
        self._rewards[step], self._terminations[step], self._truncations[step] = rewards, terminations, truncations

    def rollout(self, *, worker: int, incarnation: int, number: int, version: int) -> Rollout:
        """Returns the rollout, whose arrays are these: the next `begin` overwrites them."""
        np.logical_or(self._terminations, self._truncations, out=self._resets[1:])
        returns, lengths = self._episodes.ended(self._rewards, self._resets)
        return Rollout(
            worker=worker,
            incarnation=incarnation,
            number=number,
            version=version,
            obs=self.obs,
            actions=self._actions,
            rewards=self._rewards,
            terminations=self._terminations,
            truncations=self._truncations,
            resets=self._resets,
            extras=self._extras,
            episode_returns=returns,
            episode_lengths=lengths,
        )


def _allocated(length: int, example: Tree) -> Tree:
    return mapped(lambda array: np.empty((length, *array.shape), array.dtype), example)
