"""The example with MuJoCo Warp, on the CPU; Warp compiles its kernels in the first run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

import tandem

_ROOT = Path(__file__).parents[2]
_PROGRAM = _ROOT / "client_py" / "examples" / "warp_engine.py"
_SUITE = _ROOT / "bazel-bin" / "engine_adapter" / "conformance" / "suite"
_ENVS = 3
_START_SECS = 600.0  # of which compilation takes most
_FRAME_SKIP = 5


@pytest.fixture(scope="module")
def engine() -> Iterator[tandem.EngineProcess]:
    """Starts the engine once, with short episodes."""
    with tandem.launch_engine(
        server=_PROGRAM, num_envs=_ENVS, flags=("--max_episode_steps=30",), timeout=_START_SECS
    ) as process:
        yield process


def test_steps_are_mujocos(engine: tandem.EngineProcess) -> None:
    """Each step gives what MuJoCo gives from the same observation, up to rounding to float32."""
    theirs: Any = gymnasium.make("HalfCheetah-v5").unwrapped
    model, data = theirs.model, theirs.data
    with closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name, timeout=60))) as envs:
        assert envs.single_action_space == theirs.action_space
        envs.action_space.seed(0)
        obs, infos = envs.reset(seed=1)
        for _ in range(25):
            actions = envs.action_space.sample()
            after, rewards, _, _, next_infos = envs.step(actions)
            for env in range(_ENVS):
                data.qpos[:] = np.concatenate([infos["x_position"][[env]], obs[env, : model.nq - 1]])
                data.qvel[:] = obs[env, model.nq - 1 :]
                data.ctrl[:] = actions[env]
                mujoco.mj_step(model, data, _FRAME_SKIP)
                np.testing.assert_allclose(after[env, : model.nq - 1], data.qpos[1:], rtol=1e-3, atol=1e-3)
                np.testing.assert_allclose(after[env, model.nq - 1 :], data.qvel, rtol=2e-2, atol=5e-2)
                velocity = (next_infos["x_position"][env] - infos["x_position"][env]) / (0.01 * _FRAME_SKIP)
                np.testing.assert_allclose(next_infos["x_velocity"][env], velocity, rtol=1e-3, atol=1e-3)
                reward = next_infos["x_velocity"][env] - 0.1 * np.square(actions[env]).sum()
                np.testing.assert_allclose(rewards[env], reward, rtol=1e-3, atol=1e-3)
            obs, infos = after, next_infos


def test_steps_of_some_leave_the_others(engine: tandem.EngineProcess) -> None:
    """An environment's episode is the same, whichever others are stepped meanwhile; episodes end in time."""
    with closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name, timeout=60))) as envs:
        envs.reset(seed=5)
        together = [envs.step(np.full((_ENVS, 6), 0.3, np.float32))[0] for _ in range(10)]
        envs.reset(seed=5)
        for step in range(10):
            for env in (2, 0, 1):
                obs = envs.step(np.full((1, 6), 0.3, np.float32), env_ids=[env])[0]
                np.testing.assert_allclose(obs[0], together[step][env], rtol=1e-4, atol=1e-4)
        truncations = [envs.step(np.zeros((_ENVS, 6), np.float32))[3].tolist() for _ in range(20)]
        assert truncations == [[False] * _ENVS] * 19 + [[True] * _ENVS]


# The stand-in driver's memory is the process's own, so that kernels on the CPU can write it.
_ON_A_GPU = """
import sys
sys.path.insert(0, {folder!r})
import tandem
import warp_engine
class OnGpu(warp_engine.HalfCheetah):
    cuda_device = 0
tandem.serve_program(OnGpu)
"""
_READER = """
import ctypes, sys
import numpy as np
import tandem
with tandem.SharedMemoryClient(sys.argv[1], timeout=60) as client:
    client.reset(seed=0)
    for step in range(40):
        if step == 35:
            client.reset([1])
        else:
            client.step(np.full((client.num_envs, 6), 0.1 * step % 1, np.float32))
        for (role, _), array in client.fields_cuda.items():
            array.wait_on(-1)
            found = np.frombuffer(ctypes.string_at(array.pointer, array.nbytes), array.dtype).reshape(array.shape)
            expected = {"obs": client.obs, "final_obs": client.final_obs, "reward": client.rewards}[role]
            np.testing.assert_array_equal(found, expected, role)
    assert client.final_obs.any()
print("right")
"""


@pytest.mark.usefixtures("engine")  # which has compiled the kernels
def test_the_arrays_on_a_gpu_are_those_of_the_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the stand-in driver: observations, final observations and rewards, also of resets."""
    program = tmp_path / "engine.py"
    program.write_text(_ON_A_GPU.format(folder=str(_PROGRAM.parent)), "utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("TANDEM_CUDA_LIBRARY", str(_ROOT / "bazel-bin" / "transport" / "gpu" / "standin_cuda.so"))
    monkeypatch.setenv("TANDEM_STANDIN_INLINE", "1000000")  # since these kernels wait for no stream
    with tandem.launch_engine(
        server=program, num_envs=_ENVS, flags=("--max_episode_steps=30",), timeout=_START_SECS
    ) as process:
        command = [sys.executable, "-c", _READER, process.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr


@pytest.mark.usefixtures("engine")  # which has compiled the kernels
def test_passes_the_conformance_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of engine_adapter/conformance, in real processes; each of its tests starts the engine."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # a test limits the memory that may be reserved
    command: list[str | Path] = [_SUITE, "--limit_flag=max_episode_steps", sys.executable, _PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
