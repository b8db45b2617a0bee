"""Every task equals Gymnasium's in every autoreset mode; `tools/parity` compares more seeds."""

import os

import pytest
from gymnasium.vector import AutoresetMode

from tandem.environments.registration import TASKS
from tests.parity.comparison import compare

_EMULATED = ("CartPole-v1", "HalfCheetah-v5")  # a task takes minutes there


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("task", _EMULATED if "TANDEM_EMULATED" in os.environ else TASKS)
def test_equals_gymnasiums_vector_environment(task: str, mode: AutoresetMode) -> None:
    """Spaces, observations, rewards, flags, infos and dtypes are equal at every random step."""
    steps = 1010  # longer than the time limit of 1,000
    counts = compare(task, mode, seed=0, steps=steps)
    assert counts["masked"] == steps // 97
    assert counts["terminated"] + counts["truncated"] > 0
