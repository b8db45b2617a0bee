"""Tests of the example train_ars: training, the printed table, and Ctrl-C."""

import re
import signal
from pathlib import Path

import pytest

from tandem.testing.engines import needs_hardware, start_python, watchdog  # noqa: F401, a fixture

_SCRIPT = Path(__file__).with_name("train_ars.py")


def _value(table: str, row: str) -> float:
    found = re.search(rf"^  {row} +(-?[0-9.,]+)", table, re.MULTILINE)
    assert found, table
    return float(found[1].replace(",", ""))


@needs_hardware
def test_policy_learns_to_run(tmp_path: Path) -> None:
    """After 6 iterations the return is at least 300 above the returns of a random and of the untrained policy."""
    script = start_python(_SCRIPT, "--num_envs=32", "--iterations=6", "--seed=1", f"--out={tmp_path}")
    out, err = script.communicate()
    assert script.returncode == 0, err
    assert len(re.findall(r"^iteration", out, re.MULTILINE)) == 6
    random, before, after = (_value(out, row) for row in ("return, random policy", "return before", "return after"))
    assert random < 0
    assert after > max(random, before) + 300
    assert _value(out, "environment steps/s") > 0
    assert (tmp_path / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


@needs_hardware
@pytest.mark.parametrize("at", ["HalfCheetah-v5: 2 environments", "iteration   1"])
def test_ctrl_c_shows_the_results_so_far(at: str, tmp_path: Path) -> None:
    """After SIGINT the script still prints the table, writes the learning curve, and exits with code 0."""
    script = start_python(_SCRIPT, "--num_envs=2", "--seconds=1000", f"--out={tmp_path}")
    assert script.stdout is not None
    while not script.stdout.readline().startswith(at):
        assert script.poll() is None
    script.send_signal(signal.SIGINT)
    out, err = script.communicate()
    assert script.returncode == 0, err
    assert "interrupted" in out and "return after" in out
    assert (tmp_path / "learning_curve.png").exists()


def test_invalid_number_of_environments_is_refused() -> None:
    """An odd number of environments is a usage error: the search directions come in pairs."""
    script = start_python(_SCRIPT, "--num_envs=3")
    _, err = script.communicate()
    assert script.returncode == 2 and "even" in err


_ENGINE = '''
import numpy as np
from gymnasium import spaces
import tandem

class Ends(tandem.Engine):
    """Rewards each step with 1; an episode ends after three steps."""
    observation_space = {observations}
    action_space = spaces.Box(-1, 1, (1,))
    max_episode_steps = {limit}

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.steps = num_envs, np.zeros(num_envs, np.int64)

    def reset(self, envs, seeds, arrays):
        self.steps[envs] = 0

    def step(self, envs, arrays):
        self.steps[envs] += 1
        arrays.rewards[envs] = 1
        arrays.terminateds[envs] = self.steps[envs] == 3

tandem.serve_program(Ends)
'''


def _train(folder: Path, **parts: str) -> tuple[int, str, str]:
    engine = folder / "engine.py"
    engine.write_text(_ENGINE.format(**parts))
    script = start_python(_SCRIPT, "--num_envs=2", "--iterations=1", f"--server={engine}", f"--out={folder}")
    out, err = script.communicate()
    return script.returncode, out, err


def test_an_episode_counts_up_to_its_end(tmp_path: Path) -> None:
    """The steps after it are of the next episode."""
    code, out, err = _train(tmp_path, observations="spaces.Box(-1, 1, (1,))", limit="7")
    assert code == 0, err
    for row in ("return, random policy", "return before", "return after"):
        assert _value(out, row) == 3


@pytest.mark.parametrize(
    ("observations", "limit", "found"),
    [
        ("spaces.Box(-1, 1, (1,))", "0", "found none; set max_episode_steps"),
        ("spaces.Dict({'x': spaces.Box(-1, 1, (1,))})", "7", "found fields"),
    ],
)
def test_a_task_that_the_search_cannot_learn_is_refused(
    tmp_path: Path, observations: str, limit: str, found: str
) -> None:
    """A task without a time limit, or with observations that are no rows."""
    code, _, err = _train(tmp_path, observations=observations, limit=limit)
    assert code == 1 and found in err, err
