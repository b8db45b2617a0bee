"""Policies of the tests, and a training in NumPy."""

import time
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tandem.ray import Rollout, RolloutWorkers

_RATE = 0.05


class Linear:
    """Chooses by a linear function of the observation: the mean of continuous actions, or logits of discrete ones."""

    def __init__(self, obs_space: Any, act_space: Any) -> None:
        """Starts with weights 0."""
        self._discrete = isinstance(act_space, spaces.Discrete)
        outputs = int(act_space.n) if self._discrete else act_space.shape[0]
        self._weights = np.zeros((obs_space.shape[0], outputs))

    def load(self, weights: NDArray[np.float64]) -> None:
        """Takes float64[obs_size, outputs]."""
        self._weights = weights

    def act(self, obs: NDArray[Any], random: np.random.Generator) -> tuple[Any, dict[str, Any]]:
        """Samples; keeps the outputs."""
        outputs = obs @ self._weights
        if not self._discrete:
            noise = random.standard_normal(outputs.shape)
            return np.clip(outputs + 0.3 * noise, -1.0, 1.0).astype(np.float32), {"means": outputs}
        chances = softmax(outputs)
        chosen = (random.random((len(obs), 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
        return np.minimum(chosen, outputs.shape[1] - 1), {"chances": chances}


class Unhurried(Linear):
    """Waits 5 ms in each step, and keeps its time."""

    def act(self, obs: NDArray[Any], random: np.random.Generator) -> tuple[Any, dict[str, Any]]:
        """Waits, then as Linear; adds float64[num_envs], seconds of time.monotonic()."""
        time.sleep(0.005)
        actions, extras = super().act(obs, random)
        return actions, {**extras, "times": np.full(len(obs), time.monotonic())}


class Failing(Linear):
    """Raises an exception in its first step."""

    def act(self, obs: NDArray[Any], random: np.random.Generator) -> tuple[Any, dict[str, Any]]:
        """Raises ZeroDivisionError."""
        raise ZeroDivisionError("a fault of the policy")


class Reinforce:
    """Improves a `Linear` policy of CartPole by its policy gradient.

    Attributes:
      weights: float64[4, 2].
      returns: The mean return of the episodes that ended in each update's rollouts.
      rate: The learning rate.
    """

    def __init__(self) -> None:
        """Starts with weights 0."""
        self.weights = np.zeros((4, 2))
        self._mean, self._square, self._updates = np.zeros((4, 2)), np.zeros((4, 2)), 0
        self.returns: list[float] = []
        self.rate = _RATE

    def learn(self, rollouts: list[Rollout]) -> None:
        """Makes one step of Adam."""
        gradient = np.mean([self._gradient(rollout) for rollout in rollouts], axis=0)
        self._updates += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.01 * (gradient**2 - self._square)
        mean = self._mean / (1 - 0.9**self._updates)
        square = self._square / (1 - 0.99**self._updates)
        self.weights = self.weights + self.rate * mean / (np.sqrt(square) + 1e-8)
        if len(ended := np.concatenate([rollout.episode_returns for rollout in rollouts])):
            self.returns.append(float(ended.mean()))

    @staticmethod
    def _gradient(rollout: Rollout) -> NDArray[np.float64]:
        gains = np.zeros_like(rollout.rewards)
        following = np.zeros(rollout.rewards.shape[1])
        for step in reversed(range(len(gains))):
            following = rollout.rewards[step] + 0.98 * following * ~rollout.resets[step + 1]
            gains[step] = following
        used = ~rollout.resets[:-1]
        gains = (gains - gains[used].mean()) / (gains[used].std() + 1e-8)
        surprise = np.eye(2)[rollout.actions] - rollout.extras["chances"]
        weighted = surprise * (gains * used)[..., np.newaxis]
        obs = rollout.obs[:-1].astype(np.float64)
        gradient: NDArray[np.float64] = np.einsum("tni,tno->io", obs, weighted) / used.sum()
        return gradient


def train(workers: RolloutWorkers, updates: int, before_update: Any = None) -> Reinforce:
    """Trains CartPole for some updates.

    Args:
      workers: With the policy `Linear`.
      updates: Their number.
      before_update: Called with each update's index.
    """
    trainer = Reinforce()
    for update in range(updates):
        if before_update is not None:
            before_update(update)
        workers.publish(trainer.weights)
        # It decreases to zero, so that trainings end alike: in eight, final returns of 80 updates differ by some 8 %.
        trainer.rate = _RATE * (1 - update / updates)
        trainer.learn(workers.collect())
    return trainer


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns probabilities of the last axis."""
    exponents = np.exp(logits - logits.max(axis=-1, keepdims=True))
    chances: NDArray[np.float64] = exponents / exponents.sum(axis=-1, keepdims=True)
    return chances
