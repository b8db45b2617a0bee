"""The measuring loop of every client in Python, Tandem's and the peers', and what their engines in Python share.

It imports neither tandem nor a peer: the peers' clients run by interpreters that have no tandem.
"""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmark.measurement import Group, Size, warmup_of
from tests.benchmark.quantile import quantile

Floats = NDArray[np.float32]
# Observations float32[envs, obs], rewards (float32, or float64 where a peer makes them so) and dones, [envs] each.
Results = tuple[Floats, NDArray[Any], NDArray[Any]]
Step = Callable[[Floats], Results]


class PackedResults:
    """Results in one block of bytes without gaps, as they travel.

    Attributes:
      memory: The block.
      arrays: Views of it: observations, rewards, dones.
    """

    def __init__(self, size: Size, memory: Any = None) -> None:
        """Lays them out.

        Args:
          size: The payload.
          memory: Anything with `nbytes_of(size)` bytes; None: new memory.
        """
        self.memory = np.zeros(nbytes_of(size), np.uint8) if memory is None else np.frombuffer(memory, np.uint8)
        rewards_at = size.envs * size.obs * 4
        dones_at = rewards_at + size.envs * 4
        self.arrays: Results = (
            self.memory[:rewards_at].view(np.float32).reshape(size.envs, size.obs),
            self.memory[rewards_at:dones_at].view(np.float32),
            self.memory[dones_at : dones_at + size.envs],
        )


def nbytes_of(size: Size) -> int:
    """How many bytes packed results take."""
    return size.envs * (size.obs * 4 + 4 + 1)


class TrivialWork:
    """The engines' work, in Python."""

    def __init__(self, size: Size) -> None:
        """Prepares it for a size."""
        self._ramp = np.arange(size.obs, dtype=np.float32)

    def __call__(self, actions: Floats, results: Results) -> None:
        """Writes the results of actions.

        Args:
          actions: float32[envs, act].
          results: Where to.
        """
        obs, rewards, dones = results
        actions.sum(axis=1, dtype=np.float32, out=rewards)
        np.add(rewards[:, None], self._ramp, out=obs)
        dones.fill(0)


def measure_steps(step: Step, engine_cpu_nanos: Callable[[], int], size: Size, seconds: float) -> Group:
    """Measures one group of exchanges, with Python's garbage collection off.

    Args:
      step: Hands over float32[envs, act] and returns its results, valid until the next call.
      engine_cpu_nanos: Tells the CPU time that the engine has used.
      size: The payload.
      seconds: End the group after that long; ten exchanges are measured at least.

    Returns:
      What it took.

    Raises:
      RuntimeError: Results were not those of the actions.
    """
    gc.collect()
    gc.disable()
    try:
        return _measure(step, engine_cpu_nanos, size, seconds)
    finally:
        gc.enable()


def _measure(step: Step, engine_cpu_nanos: Callable[[], int], size: Size, seconds: float) -> Group:
    # Two sets of actions take turns, so that results of the exchange before would be noticed.
    base = (np.arange(size.envs * size.act) % 5).astype(np.float32).reshape(size.envs, size.act)
    actions = (base, base + np.float32(1))
    rewards_wanted = tuple(float(a[-1].sum()) for a in actions)
    last_of_ramp = size.obs - 1
    steps: list[int] = []
    cycles: list[int] = []
    now = time.perf_counter_ns
    # Longer than that, if need be: the scheduler spreads two processes over the cores in its own time.
    warm = now() + 30_000_000
    for i in _endless_until(lambda: now() >= warm, -warmup_of(size), size.exchanges):
        if i == 0:
            engine_cpu = engine_cpu_nanos()
            client_cpu = time.process_time_ns()
            end = now() + int(seconds * 1e9)
        wanted = actions[i & 1]
        asked = now()
        results = step(wanted)
        answered = now()
        obs, rewards, dones = results
        obs.sum(), rewards.sum(), dones.sum()  # a policy reads every value
        read = now()
        reward = rewards_wanted[i & 1]
        if rewards[-1] != reward or obs[-1, -1] != reward + last_of_ramp or dones[-1]:
            raise RuntimeError(
                f"exchange {i}, last environment: expected reward {reward:g}, last value {reward + last_of_ramp:g} and "
                f"done 0, found {rewards[-1]:g}, {obs[-1, -1]:g} and {dones[-1]}. Next: measure it alone, by --rows"
            )
        if i < 0:
            continue
        steps.append(answered - asked)
        cycles.append(read - asked)
        if i >= 10 and read >= end:
            break
    client_cpu = time.process_time_ns() - client_cpu
    engine_cpu = engine_cpu_nanos() - engine_cpu
    return Group(
        exchanges=len(steps),
        step_mean=sum(steps) / len(steps),
        step_p50=quantile(steps, 0.5),
        step_p99=quantile(steps, 0.99),
        cycle_p50=quantile(cycles, 0.5),
        client_cpu=client_cpu / len(steps),
        engine_cpu=engine_cpu / len(steps),
    )


def _endless_until(warm: Callable[[], bool], first: int, end: int) -> Iterator[int]:
    """Counts from first (negative) to end - 1, but goes on from -2 instead of 0 until it is warm."""
    i = first
    while i < end:
        if i == 0 and not warm():
            i = -2
        yield i
        i += 1
