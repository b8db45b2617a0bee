"""Gymnasium's own tests of vector environments, with Tandem's workers; run by `tools/test --with gymnasium`."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.vector import AutoresetMode
from their_tests import TheirTests

from tandem.vector import AsyncVectorEnv

# Of Gymnasium's main branch, seven weeks before its release 1.4.0; since then annotations of types have changed.
_COMMIT = "3f0476a8cc224dcce2167cc4b6971ae0f04d5cfc"
_PATHS = ("tests/vector", "tests/wrappers/vector", "tests/envs/registration/test_make_vec.py")
_LEFT_OUT = ("tests/wrappers/vector/test_record_video.py",)  # needs moviepy

_CASES = ("Async(shared_memory=True)", "Async(shared_memory=False)")
_CLASSES = ("AsyncVectorEnv(shared_memory=True)", "AsyncVectorEnv(shared_memory=False)")

# What fails with Tandem's workers, and why.
_FAILS = {
    "test_custom_space_async_vector_env_shared_memory": "expects that custom spaces are refused; they work",
    "test_async_vector_subenv_error": "expects the environment's own exception; it is EnvFailed, with the traceback",
    "test_step_timeout_async_vector_env": "gives float64 actions to a float32 Box; workers get float32",
    **{
        f"test_autoreset_within_step[{case}]": "expects final_obs of the environment's type; it has the space's dtype"
        for case in _CASES
    },
    **{
        f"test_partial_reset_failure[{case}]": "expects a TypeError for a mask of numbers; it is a ValueError, too"
        for case in _CASES
    },
    **{
        f"test_action_count_compatibility[{case}]": "expects a TypeError for one action; it is InvalidAction"
        for case in _CASES
    },
    **{
        f"test_obs_mode_different_different_spaces[{mode}-{case}]": "other observation modes are refused"
        for mode in ("different", "observation_mode1")
        for case in _CLASSES
    },
    "test_equivalence_with_wrapper": "reads the attribute `envs` of SyncVectorEnv",
}

# What is run without comparing texts: Tandem's errors have the classes that are expected.
_OTHER_TEXTS = {
    "test_reset_out_of_order_async_vector_env": "of AlreadyPendingCallError, NoAsyncCallError and of a warning",
    "test_step_out_of_order_async_vector_env": "of AlreadyPendingCallError, NoAsyncCallError and of a warning",
    **{f"test_invalid_observation_mode[{case}]": "of the error for an unknown observation mode" for case in _CLASSES},
    **{f"test_obs_mode_same_different_spaces[{case}]": "of the error for different spaces" for case in _CLASSES},
}


class _InPlaceOfSync(AsyncVectorEnv):
    """Has the arguments of SyncVectorEnv's constructor."""

    def __init__(
        self,
        env_fns: Any,
        copy: bool = True,
        observation_mode: Any = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        super().__init__(env_fns, copy=copy, observation_mode=observation_mode, autoreset_mode=autoreset_mode)


def _replace(patch: pytest.MonkeyPatch, path: Path) -> None:
    """Replaces AsyncVectorEnv; for the tests of vector wrappers, of which most use SyncVectorEnv, that class too."""
    patch.setattr(gymnasium.vector, "AsyncVectorEnv", AsyncVectorEnv)
    if "wrappers" in path.parts:
        patch.setattr(gymnasium.vector, "SyncVectorEnv", _InPlaceOfSync)


def main(clone: str, scratch: str, *options: str) -> int:
    """Takes the tests of a clone into a folder, and runs them there; returns the exit code."""
    archive = subprocess.run(["git", "-C", clone, "archive", _COMMIT, "tests"], stdout=subprocess.PIPE)
    if archive.returncode != 0:
        print(
            f"tandem: expected a clone of Gymnasium's repository with commit {_COMMIT} at {clone}, found none.\n"
            f"Next: git clone it, or git -C {clone} fetch",
            file=sys.stderr,
        )
        return 2
    subprocess.run(["tar", "--extract", f"--directory={scratch}"], input=archive.stdout, check=True)
    sys.path.insert(0, scratch)  # of the workers, too
    settings = ["-c", "/dev/null", f"--rootdir={scratch}", "-p", "no:cacheprovider", "--import-mode=importlib"]
    paths = [str(Path(scratch, path)) for path in _PATHS]
    left_out = [f"--ignore={Path(scratch, path)}" for path in _LEFT_OUT]
    plugin = TheirTests(Path(scratch), _replace, fails=_FAILS, other_texts=_OTHER_TEXTS)
    return int(pytest.main([*settings, *left_out, *paths, *options], plugins=[plugin]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
