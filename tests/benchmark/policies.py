"""What a trainer computes between two steps, and the figures of steps that follow it."""

import importlib
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from tests.benchmark.rows import Figures, Turn, us

NETWORK = "a network in NumPy"
TORCH = "a network in torch"  # in an interpreter that has it
ALL = ("0 ms", "0.1 ms", "0.3 ms", "1 ms", "3 ms", "10 ms", NETWORK)

_HIDDEN, _ACTIONS = 64, 6
_LEAST_STEPS = 20
_WARM_UP_SECS = 0.3  # both sides learn how long they wait


def compute(seconds: float) -> None:
    """Computes without a pause."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _network() -> Callable[[Any], None]:
    """Returns a policy with two hidden layers of 64."""
    layers: list[Any] = []

    def act(obs: Any) -> None:
        found = np.asarray(obs, np.float32)
        if not layers:
            sizes = (found.shape[1], _HIDDEN, _HIDDEN, _ACTIONS)
            random = np.random.default_rng(0)
            layers.extend(random.normal(size=pair).astype(np.float32) for pair in zip(sizes, sizes[1:], strict=False))
        for layer in layers:
            found = np.tanh(found @ layer)

    return act


def _torch_network() -> Callable[[Any], None]:
    """Returns the same policy in torch, on one thread."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    layers: list[Any] = []

    def act(obs: Any) -> None:
        found = torch.as_tensor(obs, dtype=torch.float32)
        if not layers:
            sizes = (found.shape[1], _HIDDEN, _HIDDEN, _ACTIONS)
            for pair in zip(sizes, sizes[1:], strict=False):
                layers.extend((torch.nn.Linear(*pair), torch.nn.Tanh()))
        with torch.no_grad():
            torch.nn.Sequential(*layers)(found).numpy()

    return act


def stepping(step: Callable[[Any], Any], batches: Sequence[Any], policy: str) -> Turn:
    """Returns a turn that computes a policy after each step.

    Args:
      step: Takes actions; returns a tuple that begins with the observations, [envs, obs].
      batches: Actions, which are used in turn.
      policy: NETWORK, TORCH, or a time, such as "0.3 ms".

    Returns:
      The turn. Its figures are of a step alone, and of a step with its policy.
    """
    actions = cycle(batches)
    if policy in (NETWORK, TORCH):
        act = _network() if policy == NETWORK else _torch_network()
    else:
        milliseconds = float(policy.removesuffix(" ms"))

        def act(obs: Any) -> None:
            compute(milliseconds / 1e3)

    def turn(seconds: float) -> Figures:
        steps: list[int] = []
        now = time.perf_counter_ns
        began = now()
        while True:
            asked = now()
            results = step(next(actions))
            steps.append(now() - asked)
            act(results[0])
            if (last := now()) >= began + seconds * 1e9 and len(steps) >= _LEAST_STEPS:
                return us(steps) | {"loop us": (last - began) / 1e3 / len(steps)}

    turn(_WARM_UP_SECS)
    return turn
