"""ParallelEnvs of PettingZoo as rows, compared with a loop over them; run by `tools/test --with environments`."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from mpe2 import simple_spread_v3, simple_tag_v3
from pettingzoo.butterfly import knights_archers_zombies_v11
from pettingzoo.sisl import pursuit_v5

import tandem
from tandem.testing.parallel_envs import LoopedEnvs, assert_rows

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

_ENVS = 3
_STEPS = int(os.environ.get("TANDEM_PARITY_STEPS", "1000")) // 5

# And whether some of its agents end before others.
_FUNCTIONS: dict[str, tuple[Callable[[], Any], bool]] = {
    "simple_spread": (functools.partial(simple_spread_v3.parallel_env, N=3), False),
    "simple_spread, continuous actions": (
        functools.partial(simple_spread_v3.parallel_env, continuous_actions=True, max_cycles=10),
        False,
    ),
    "pursuit": (functools.partial(pursuit_v5.parallel_env, max_cycles=20, n_pursuers=4), False),
    "knights_archers_zombies": (
        functools.partial(knights_archers_zombies_v11.parallel_env, max_cycles=150, line_death=True),
        True,
    ),
}


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_equals_a_loop(name: str, mode: AutoresetMode) -> None:
    """Observations, rewards, flags and infos have the same types and digits, from random seeds."""
    function, some_end_early = _FUNCTIONS[name]
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    ours = tandem.pettingzoo.parallel_vec(function, _ENVS, num_workers=2, autoreset_mode=mode)
    theirs = LoopedEnvs([function() for _ in range(_ENVS)], mode)
    counts = assert_rows(ours, theirs, _STEPS, seed)
    ours.close()
    assert counts["truncated"] + counts["terminated"] > 0
    assert (counts["inactive"] > 0) is some_end_early, counts


def test_the_examples_of_the_pages_run() -> None:
    """docs/many_agents.md and docs/states.md, as printed."""
    pages = ["docs/many_agents.md", "docs/states.md"]
    command = [sys.executable, "tests/docs/examples.py", "--with", "environments", *pages]
    root = Path(__file__).parent.parent.parent
    ran = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_agents_with_different_spaces_are_refused() -> None:
    """The text has their names and spaces."""
    text = r"observation_space: expected equal spaces.*\(16,\).* of 'adversary_0' and .*\(14,\).* of 'agent_0'"
    with pytest.raises(tandem.EngineStartFailed, match=text):
        tandem.pettingzoo.parallel_vec(simple_tag_v3.parallel_env, 2)


def test_environments_whose_agents_step_in_turn_are_refused() -> None:
    """The text has the function that converts them."""
    with pytest.raises(tandem.EngineStartFailed, match="found an AECEnv.*aec_to_parallel"):
        tandem.pettingzoo.parallel_vec(simple_spread_v3.env, 2)
