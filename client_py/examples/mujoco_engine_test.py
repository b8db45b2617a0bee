"""The example: its steps are those of Gymnasium's HalfCheetah-v5, and it passes the conformance suite."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from examples.mujoco_engine import HalfCheetah
from tandem.serving.arrays import EngineArrays
from tandem.testing.engines import (  # noqa: F401, the fixtures
    needs_hardware,
    nothing_left_behind,
    watchdog,
)
from tandem.testing.python_engines import serving

_PROGRAM = Path(__file__).with_name("mujoco_engine.py")
_SUITE = Path("engine_adapter/conformance/suite")


@needs_hardware
def test_passes_the_conformance_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of engine_adapter/conformance, in real processes. OpenBLAS's threads reserve memory, which a test limits."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    command: list[str | Path] = [_SUITE, "--limit_flag=max_episode_steps", sys.executable, _PROGRAM, "--num_threads=2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_steps_are_gymnasiums() -> None:
    """From the same states, for 50 steps."""
    theirs = [gymnasium.make("HalfCheetah-v5").unwrapped for _ in range(3)]
    for seed, env in enumerate(theirs):
        env.reset(seed=seed)

    class FromTheirStates(HalfCheetah):
        def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
            super().reset(envs, seeds, arrays)
            for env in envs:
                model, data = theirs[env].model, theirs[env].data
                mujoco.mj_getState(model, data, self._states[env], mujoco.mjtState.mjSTATE_FULLPHYSICS)
            self._observe(envs, arrays)

    with (
        serving(FromTheirStates(3)) as name,
        contextlib.closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(name))) as envs,
    ):
        assert envs.single_action_space == theirs[0].action_space
        envs.action_space.seed(0)
        envs.reset()
        for _ in range(50):
            actions = envs.action_space.sample()
            obs, rewards, _, _, infos = envs.step(actions)
            for index, env in enumerate(theirs):
                wanted, reward, _, _, info = env.step(actions[index])
                np.testing.assert_allclose(obs[index], wanted, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(rewards[index], float(reward), rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(infos["x_velocity"][index], info["x_velocity"], rtol=1e-5, atol=1e-6)
