"""PPO's networks in NumPy, for measurements: the policy of a worker, and the bare loop that it is compared with."""

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tandem

Weights = dict[str, list[NDArray[np.float32]]]


def random_weights(obs_size: int, act_size: int, seed: int = 0) -> Weights:
    """Returns networks of two hidden layers of 64: "actor" and "critic", float32[inputs, outputs] each."""
    random = np.random.default_rng(seed)

    def layers(outputs: int) -> list[NDArray[np.float32]]:
        sizes = (obs_size, 64, 64, outputs)
        return [
            random.normal(0, size_in**-0.5, (size_in, size_out)).astype(np.float32)
            for size_in, size_out in zip(sizes[:-1], sizes[1:], strict=True)
        ]

    return {"actor": layers(act_size), "critic": layers(1)}


class ActorCritic:
    """Normal actions, with their log-probabilities, and values."""

    def __init__(self, obs_space: Any, act_space: Any) -> None:
        """Starts with random weights."""
        self._weights = random_weights(obs_space.shape[0], act_space.shape[0])

    def load(self, weights: Weights) -> None:
        """Takes weights as `random_weights` returns them."""
        self._weights = weights

    def act(self, obs: NDArray[np.float32], random: np.random.Generator) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Samples actions; keeps them before the clip, their log-probabilities and the values."""
        means = _outputs(self._weights["actor"], obs)
        noise = random.standard_normal(means.shape, np.float32)
        actions = means + 0.6 * noise
        log_probs = -0.5 * np.square(noise).sum(axis=1)
        values = _outputs(self._weights["critic"], obs)[:, 0]
        return np.clip(actions, -1.0, 1.0), {"actions": actions, "log_probs": log_probs, "values": values}


def _outputs(layers: Sequence[NDArray[np.float32]], inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    for weights in layers[:-1]:
        inputs = np.tanh(inputs @ weights)
    return inputs @ layers[-1]


def bare_loop() -> None:
    """Steps the environments with the policy, without Ray; the program `python -m tests.ray.actor_critic`.

    The argument is JSON: task, num_envs, horizon, core (null: any), seconds. Prints "ready"; after a line of standard
    input makes rollouts for this time, and prints the steps and the seconds. Ends with standard input.
    """
    asked = json.loads(sys.argv[1])
    if asked["core"] is not None:
        os.sched_setaffinity(0, [asked["core"]])
    envs = tandem.make_vec(asked["task"], asked["num_envs"], copy=False, threads=1)
    policy = ActorCritic(envs.single_observation_space, envs.single_action_space)
    random = np.random.default_rng(0)
    obs, _ = envs.reset(seed=0)
    horizon = asked["horizon"]
    # What PPO learns from, as loops in the style of CleanRL keep it.
    actions, kept = policy.act(obs, random)
    results = envs.step(actions)
    obs = results[0]
    arrays = [np.empty((horizon, *part.shape), part.dtype) for part in (obs, actions, *kept.values(), *results[1:4])]
    print("ready", flush=True)
    for _ in sys.stdin:
        started, steps = time.monotonic(), 0
        while (took := time.monotonic() - started) < asked["seconds"]:
            for step in range(horizon):
                arrays[0][step] = obs
                actions, kept = policy.act(obs, random)
                results = envs.step(actions)
                for array, part in zip(arrays[1:], (actions, *kept.values(), *results[1:4]), strict=True):
                    array[step] = part
                obs = results[0]
            steps += horizon * asked["num_envs"]
        print(json.dumps({"steps": steps, "seconds": took}), flush=True)
    envs.close()


if __name__ == "__main__":
    bare_loop()
