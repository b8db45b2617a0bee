"""Every task equals Gymnasium's in every autoreset mode; `tools/parity` compares more seeds."""

import pytest
from gymnasium.vector import AutoresetMode

from tandem.environments.registration import TASKS
from tests.parity.comparison import compare
from tools.testing import pytest_main


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("task", TASKS)
# The first is long enough for the time limit of 1,000 steps.
@pytest.mark.parametrize(("seed", "steps"), [(0, 1010), (1, 300)])
def test_equals_gymnasiums_vector_environment(task: str, mode: AutoresetMode, seed: int, steps: int) -> None:
    """Spaces, observations, rewards, flags, infos and dtypes are equal at every random step."""
    counts = compare(task, mode, seed, steps=steps)
    assert counts["masked"] == steps // 97
    assert counts["terminated"] + counts["truncated"] > 0 or steps < 1000


if __name__ == "__main__":
    pytest_main.run(__file__)
