"""The measuring loop of clients in Python, of Tandem and of peers, and the work of engines in Python."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmark.engine_process import Size
from tests.benchmark.policies import compute
from tests.benchmark.rows import Figures, us

Floats = NDArray[np.float32]
# float32[envs, obs] observations, rewards [envs] (float32, or a peer's float64), and dones [envs].
Results = tuple[Floats, NDArray[Any], NDArray[Any]]
Step = Callable[[Floats], Results]

_WARM_UP_NS = 30_000_000  # the time that the scheduler needs to place two processes on separate cores


class PackedResults:
    """Results in one block of bytes without gaps, in the form that a peer transmits.

    Attributes:
      memory: The block.
      arrays: Views of the block: observations, rewards, dones.
    """

    def __init__(self, size: Size, memory: Any = None) -> None:
        """Lays the arrays out in the block.

        Args:
          size: The payload's size.
          memory: A buffer of `nbytes_of(size)` bytes; None: new memory.
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
    """Returns the number of bytes of packed results."""
    return size.envs * (size.obs * 4 + 4 + 1)


def trivial_work(size: Size) -> Callable[[Floats, Results], None]:
    """Returns the engines' work in Python: computes the results of actions float32[envs, act]."""
    ramp = np.arange(size.obs, dtype=np.float32)

    def work(actions: Floats, results: Results) -> None:
        obs, rewards, dones = results
        actions.sum(axis=1, dtype=np.float32, out=rewards)
        np.add(rewards[:, None], ramp, out=obs)
        dones.fill(0)

    return work


def measure_steps(step: Step, size: Size, exchanges: int, seconds: float, policy_secs: float = 0.0) -> Figures:
    """Measures exchanges.

    Args:
      step: Sends float32[envs, act] and returns the results, which are valid until the next call.
      size: The payload's size.
      exchanges: The greatest number of exchanges.
      seconds: The longest duration; at least ten exchanges are measured.
      policy_secs: How long the client computes between two exchanges.

    Returns:
      Microseconds from the actions to the results, and to the end of reading the results.

    Raises:
      RuntimeError: The results were not those of the actions.
    """
    # Two sets of actions alternate, so that results of the previous exchange are detected.
    base = (np.arange(size.envs * size.act) % 5).astype(np.float32).reshape(size.envs, size.act)
    actions = (base, base + np.float32(1))
    rewards_wanted = tuple(float(a[-1].sum()) for a in actions)
    last_of_ramp = size.obs - 1
    steps: list[int] = []
    cycles: list[int] = []
    now = time.perf_counter_ns
    warm = now() + _WARM_UP_NS
    end, i = None, 0
    while len(steps) < exchanges:
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
        i += 1
        if end is None:
            if read >= warm:
                end = read + int(seconds * 1e9)
            continue
        steps.append(answered - asked)
        cycles.append(read - asked)
        if policy_secs:
            compute(policy_secs)
        if len(steps) >= 10 and read >= end:
            break
    return figures_of_steps(steps, cycles)


def figures_of_steps(steps: Any, cycles: Any) -> Figures:
    """Summarises exchanges; `cycles` includes the reading of the results."""
    return us(steps, mean=True) | {"with reading p50 us": us(cycles)["p50 us"]}
