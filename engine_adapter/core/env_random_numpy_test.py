"""EnvRandom against the generator that Gymnasium makes, bit for bit."""

import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.utils import seeding

from tools.testing import pytest_main

_DRAWS = Path("engine_adapter/core/env_random_draws")
_TAIL_START = 3.6541528853610088
_EDGE_SEEDS = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
_RANDOM_SEEDS = [int(seed) for seed in np.random.default_rng(4).integers(0, 2**64, 200, dtype=np.uint64)]


def _ours(
    seed: int, *, low: float = 0.0, high: float = 1.0, rounds: int = 1, uniforms: int = 0, normals: int = 0
) -> npt.NDArray[np.float64]:
    """What EnvRandom draws: float64[rounds, uniforms + normals]."""
    arguments = [str(seed), low.hex(), high.hex(), str(rounds), str(uniforms), str(normals)]
    output = subprocess.run([_DRAWS.resolve(), *arguments], stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(output, np.float64).reshape(rounds, uniforms + normals)


def _assert_same_bits(found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> None:
    np.testing.assert_array_equal(found.view(np.uint64), expected.view(np.uint64))


@pytest.mark.parametrize("seed", _EDGE_SEEDS)
def test_millions_of_normals_are_numpys(seed: int) -> None:
    """A million per seed: some 4,000 from each of the 256 layers, 260 from the tail, thousands drawn again."""
    generator, _ = seeding.np_random(seed)
    expected = generator.standard_normal(1_000_000)
    assert np.count_nonzero(np.abs(expected) > _TAIL_START) > 100
    without_another_try = np.random.PCG64(seed).advance(1_000_000).state
    assert generator.bit_generator.state["state"] != without_another_try["state"]
    _assert_same_bits(_ours(seed, normals=1_000_000)[0], expected)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-0.1, 0.1), (-5e-3, 5e-3), (-1e-300, 1e300), (1 / 3, 1e4), (2.0, 2.0)]
)
def test_uniform_draws_are_numpys(low: float, high: float) -> None:
    """Intervals of all sizes, the empty one among them."""
    for seed in _EDGE_SEEDS:
        generator, _ = seeding.np_random(seed)
        expected = generator.uniform(low, high, 50_000)
        _assert_same_bits(_ours(seed, low=low, high=high, uniforms=50_000)[0], expected)


def test_many_seeds_with_draws_of_both_kinds_are_numpys() -> None:
    """As resets draw: uniform for positions, then normal for velocities, again and again."""
    for seed in [*_EDGE_SEEDS, *_RANDOM_SEEDS]:
        generator, _ = seeding.np_random(seed)
        expected = np.array([[*generator.uniform(-0.1, 0.1, 9), *generator.standard_normal(9)] for _ in range(100)])
        _assert_same_bits(_ours(seed, low=-0.1, high=0.1, rounds=100, uniforms=9, normals=9), expected)


if __name__ == "__main__":
    pytest_main.run(__file__)
