"""EnvRandom equals the generator that Gymnasium makes, bit for bit."""

import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.utils import seeding

_DRAWS = Path("engine_adapter/core/env_random_draws")
_TAIL_START = 3.6541528853610088
_EDGE_SEEDS = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
_RANDOM_SEEDS = [int(seed) for seed in np.random.default_rng(4).integers(0, 2**64, 200, dtype=np.uint64)]


def _ours(
    seed: int, *, low: float = 0.0, high: float = 1.0, rounds: int = 1, uniforms: int = 0, normals: int = 0
) -> npt.NDArray[np.float64]:
    """Returns EnvRandom's draws: float64[rounds, uniforms + normals]."""
    arguments = [str(seed), low.hex(), high.hex(), str(rounds), str(uniforms), str(normals)]
    output = subprocess.run([_DRAWS.resolve(), *arguments], stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(output, np.float64).reshape(rounds, uniforms + normals)


def _assert_same_bits(found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> None:
    np.testing.assert_array_equal(found.view(np.uint64), expected.view(np.uint64))


@pytest.mark.parametrize("seed", _EDGE_SEEDS)
def test_a_million_normals_equal_numpys(seed: int) -> None:
    """The draws include some 4,000 from each of the 256 layers, 260 from the tail, and thousands of rejected ones."""
    generator, _ = seeding.np_random(seed)
    expected = generator.standard_normal(1_000_000)
    assert np.count_nonzero(np.abs(expected) > _TAIL_START) > 100
    without_another_try = np.random.PCG64(seed).advance(1_000_000).state
    assert generator.bit_generator.state["state"] != without_another_try["state"]
    _assert_same_bits(_ours(seed, normals=1_000_000)[0], expected)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-0.1, 0.1), (-5e-3, 5e-3), (-1e-300, 1e300), (1 / 3, 1e4), (2.0, 2.0)]
)
def test_uniform_draws_equal_numpys(low: float, high: float) -> None:
    """Intervals of all sizes, also an empty one."""
    for seed in _EDGE_SEEDS:
        generator, _ = seeding.np_random(seed)
        expected = generator.uniform(low, high, 50_000)
        _assert_same_bits(_ours(seed, low=low, high=high, uniforms=50_000)[0], expected)


def test_mixed_draws_with_many_seeds_equal_numpys() -> None:
    """Alternates as resets do: uniform draws for positions, then normal draws for velocities."""
    for seed in [*_EDGE_SEEDS, *_RANDOM_SEEDS]:
        generator, _ = seeding.np_random(seed)
        expected = np.array([[*generator.uniform(-0.1, 0.1, 9), *generator.standard_normal(9)] for _ in range(100)])
        _assert_same_bits(_ours(seed, low=-0.1, high=0.1, rounds=100, uniforms=9, normals=9), expected)
