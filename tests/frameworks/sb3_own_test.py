"""Stable-Baselines3's own tests of vector environments, with Tandem's; `tools/test --with frameworks` downloads them.

The tests make environments from Python classes, which an engine cannot step. Tests that check results of such a class
must fail, each for the reason given here and in docs/differences.md.
"""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from stable_baselines3.common.vec_env import VecEnv

import tandem
from tandem.environments.registration import TASKS

_THEIRS = "VEC_ENV_CLASSES = [DummyVecEnv, SubprocVecEnv]"

# Test name -> why it fails with an engine's environments.
REFUSED = {
    "test_vecenv_custom_calls": "calls methods and sets attributes of Python objects",
    "test_vecenv_terminal_obs": "expects the observations of a Python class",
    "test_vecenv_single_space": "expects the spaces of a Python class",
    "test_vecenv_dict_spaces": "expects the spaces of a Python class",
    "test_vecenv_tuple_spaces": "expects the spaces of a Python class",
}


def engine_vec_env(env_fns: list[Callable[[], gymnasium.Env[Any, Any]]], **_: Any) -> VecEnv:
    """Makes Tandem's environments of the same task, or of Pendulum-v1 instead of a Python class.

    Args:
      env_fns: Functions that make one environment each.

    Returns:
      Tandem's vector environment for Stable-Baselines3.
    """
    env = env_fns[0]()
    spec = env.spec
    env.close()
    task = spec.id if spec is not None and spec.id in TASKS else "Pendulum-v1"
    return tandem.make_vec(task, len(env_fns), render_mode="rgb_array").as_sb3()


_source = Path(os.environ["SB3_TESTS"], "test_vec_envs.py").read_text()
assert _THEIRS in _source
exec(compile(_source.replace(_THEIRS, "VEC_ENV_CLASSES = [engine_vec_env]"), "test_vec_envs.py", "exec"))
for _name in [name for name in globals() if name.startswith("test_")]:  # only Stable-Baselines3's tests so far
    if "vec_env_class" not in inspect.signature(globals()[_name]).parameters:
        del globals()[_name]  # the test checks only Stable-Baselines3's own classes
for _name, _reason in REFUSED.items():
    globals()[_name] = pytest.mark.xfail(strict=True, reason=_reason)(globals()[_name])


def test_the_page_lists_the_failing_tests() -> None:
    """docs/differences.md has the name of each failing test."""
    page = Path(__file__).parents[2].joinpath("docs", "differences.md").read_text()
    assert not [name for name in REFUSED if f"`{name}`" not in page]
