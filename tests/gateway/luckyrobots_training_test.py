"""LuckyEnv trains a policy on HalfCheetah: a minute, so the target is manual.

tools/bazel test //tests/gateway:luckyrobots_training_test
"""

import numpy as np
from luckyrobots import LuckyEnv
from numpy.typing import NDArray

from tandem.engine.process import launch_engine
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.gateways import Gateway

_STEPS = 200  # of an episode
_ITERATIONS, _DIRECTIONS, _BEST = 25, 8, 4
_STEP_SIZE, _NOISE = 0.2, 0.3


def _return_of(env: LuckyEnv, policy: NDArray[np.float32], scale: NDArray[np.float32]) -> float:
    observation, _ = env.reset()
    total = 0.0
    for _ in range(_STEPS):
        action = np.clip(policy @ (observation / scale), -1, 1)
        observation, reward, _, _, _ = env.step(action)
        total += reward
    return total


def test_augmented_random_search_makes_the_cheetah_run() -> None:
    """The mean return of the last iterations is far above that of no action."""
    rng = np.random.default_rng(0)
    name = unique_name()
    with (
        launch_engine("HalfCheetah-v5", name=name, seed=0, server="engine_adapter/server/server") as _,
        Gateway(name) as gateway,
    ):
        env = LuckyEnv(host=gateway.host, port=gateway.port, timeout=10)
        try:
            # Positions, then velocities, which are greater.
            scale = np.concatenate([np.full(8, 0.5), np.full(9, 3.0)]).astype(np.float32)
            policy = np.zeros((6, 17), np.float32)
            at_first = _return_of(env, policy, scale)
            means = []
            for _ in range(_ITERATIONS):
                directions = rng.standard_normal((_DIRECTIONS, 6, 17)).astype(np.float32)
                returns = np.array(
                    [[_return_of(env, policy + sign * _NOISE * way, scale) for sign in (1, -1)] for way in directions]
                )
                best = np.argsort(returns.max(axis=1))[-_BEST:]
                differences = returns[best, 0] - returns[best, 1]
                policy += (
                    _STEP_SIZE
                    / (_BEST * returns[best].std() + 1e-6)
                    * np.tensordot(differences, directions[best], 1).astype(np.float32)
                )
                means.append(float(returns.mean()))
        finally:
            env.close()
    assert max(means[-5:]) > at_first + 50, means
