"""The example: its steps are Gymnasium's, and it passes the conformance suite."""

import contextlib
import math
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    needs_hardware,
    nothing_left_behind,
    unique_name,
    watchdog,
)

_PROGRAM = Path(__file__).with_name("pendulum_engine.py")
_SUITE = Path("engine_adapter/conformance/suite")


@pytest.fixture(autouse=True)
def python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives this process's module search path to engines. A thread of OpenBLAS reserves memory, which a test limits."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


@needs_hardware
def test_passes_the_conformance_suite() -> None:
    """All of engine_adapter/conformance, in real processes."""
    command: list[str | Path] = [_SUITE, "--limit_flag=max_episode_steps", sys.executable, _PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "ok       Streams.ItemsAreNumberedInOrder\n" in done.stdout and " 0 failed, " in done.stdout


def test_steps_are_gymnasiums() -> None:
    """Each from the observed state, with the rounding of float32 apart; an episode has 200."""
    theirs = gymnasium.make("Pendulum-v1").unwrapped
    theirs.reset()
    with (
        tandem.launch_engine(server=_PROGRAM, num_envs=3, seed=5, name=unique_name()) as engine,
        contextlib.closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name, timeout=60))) as envs,
    ):
        assert envs.single_observation_space == theirs.observation_space
        assert envs.single_action_space == theirs.action_space
        before, _ = envs.reset(seed=7)
        for step in range(199):
            actions = np.array([[2 * math.sin(step)], [0.5], [-3]], np.float32)
            obs, rewards, _, truncations, _ = envs.step(actions)
            assert not truncations.any()
            for row in range(3):
                theirs.state = np.array([math.atan2(before[row, 1], before[row, 0]), before[row, 2]])  # type: ignore[attr-defined]
                wanted, reward, _, _, _ = theirs.step(actions[row])
                np.testing.assert_allclose(obs[row], wanted, atol=1e-4)
                np.testing.assert_allclose(rewards[row], float(reward), atol=1e-3)
            before = obs
        _, _, terminations, truncations, _ = envs.step(actions)
        assert truncations.all() and not terminations.any()


def test_shows_its_rod_and_its_joints() -> None:
    """The optional methods of the engine are services."""
    with (
        tandem.launch_engine(server=_PROGRAM, num_envs=2, name=unique_name()) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        obs = client.reset(seed=3)
        state = client.mujoco.joint_state([1])[0]
        np.testing.assert_allclose(math.cos(state.positions[0]), obs[1, 0], atol=1e-5)
        image = client.camera.frame("camera", width=100, height=80).pixels
        assert image.shape == (80, 100, 3)
        assert (image[40, 50] == (204, 77, 77)).all() and (image == 255).any()
