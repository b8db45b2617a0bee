"""Stable-Baselines3's own tests of vector environments, with Tandem's workers; run.py runs them.

SubprocVecEnv is `tandem.sb3.SubprocVecEnv`; in the tests of wrappers, which use DummyVecEnv alone, that class too.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import stable_baselines3.common.vec_env as vec_env

from tandem.sb3 import SubprocVecEnv

TESTS = (
    "test_vec_envs.py",
    "test_vec_check_nan.py",
    "test_vec_monitor.py",
    "test_vec_normalize.py",
    "test_dict_env.py::test_multiprocessing",
    "test_her.py::test_multiprocessing",
)
_OF_WRAPPERS = ("test_vec_check_nan.py", "test_vec_monitor.py", "test_vec_normalize.py")

# What fails with Tandem's workers, and why.
FAILS = {
    "test_check_nan": "steps before the first reset, which is ResetNeeded",
    "test_discrete_obs": "makes CliffWalking-v0, which Gymnasium 1.4 refuses",
}

# What is run without comparing texts: Tandem's errors have the classes that are expected.
OTHER_TEXTS = {"test_subproc_start_method": "of the error for an unknown start method"}


class _InPlaceOfDummy(SubprocVecEnv):
    """Has the arguments of DummyVecEnv's constructor."""

    def __init__(self, env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]]) -> None:
        super().__init__(env_fns)


def replace(patch: pytest.MonkeyPatch, path: Path) -> None:
    """Replaces the classes for a module of tests."""
    patch.setattr(vec_env, "SubprocVecEnv", SubprocVecEnv)
    if path.name in _OF_WRAPPERS:
        patch.setattr(vec_env, "DummyVecEnv", _InPlaceOfDummy)
