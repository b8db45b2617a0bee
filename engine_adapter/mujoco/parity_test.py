"""HalfCheetah-v5 of the server against Gymnasium's own, over the region's bytes.

Speaks to the region as a foreign client would: multiprocessing.shared_memory, struct and NumPy, no Tandem code.
"""

import signal
import struct
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

from tools.testing import pytest_main

_SERVER = Path("engine_adapter/mujoco/server")
_MAGIC = 0x4C524243
_SECONDS = 60  # a watchdog: how long anything may take
_FLOAT = np.dtype(np.float32)
_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True)
class _Result:
    obs: npt.NDArray[np.float32]  # [num_envs, 17]
    rewards: npt.NDArray[np.float32]  # [num_envs]
    terminateds: npt.NDArray[np.uint8]  # [num_envs]
    truncateds: npt.NDArray[np.uint8]  # [num_envs]


class _ForeignClient:
    """What anyone can write against the documented offsets."""

    def __init__(self, name: str) -> None:
        self._memory = shared_memory.SharedMemory(name)
        # Else this process would unlink at its exit what it merely attached to.
        resource_tracker.unregister(self._memory._name, "shared_memory")  # type: ignore[attr-defined]
        assert self._memory.buf is not None
        self._bytes = self._memory.buf
        assert self._read("I", 0) == _MAGIC
        self.num_envs, self.obs_size, self.act_size = (self._read("I", at) for at in (20, 24, 28))
        self.obs = self._array(384, _FLOAT, (self.num_envs, self.obs_size))
        self.actions = self._array(392, _FLOAT, (self.num_envs, self.act_size))
        self.rewards = self._array(400, _FLOAT, (self.num_envs,))
        self.resets = self._array(416, _BYTE, (self.num_envs,))
        self.truncateds = self._array(672, _BYTE, (self.num_envs,))
        self.terminateds = self._array(680, _BYTE, (self.num_envs,))
        self.final_obs = self._array(688, _FLOAT, (self.num_envs, self.obs_size))

    def step(self) -> _Result:
        seq = self._read("Q", 256) + 1
        struct.pack_into("<Q", self._bytes, 256, seq)
        deadline = time.monotonic() + _SECONDS
        while self._read("Q", 128) != seq:
            assert time.monotonic() < deadline, "the engine did not answer"
        return _Result(self.obs.copy(), self.rewards.copy(), self.terminateds.copy(), self.truncateds.copy())

    def close(self) -> None:
        del self.obs, self.actions, self.rewards, self.resets, self.truncateds, self.terminateds, self.final_obs
        del self._bytes
        self._memory.close()

    def _read(self, kind: str, offset: int) -> int:
        value: int = struct.unpack_from("<" + kind, self._bytes, offset)[0]
        return value

    def _array(self, offset_at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        return np.ndarray(shape, dtype, self._bytes, self._read("Q", offset_at))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Gives a function that starts a server with flags and returns a client of it; stops all at the end."""
    started: list[tuple[subprocess.Popen[bytes], _ForeignClient]] = []

    def start(*flags: str) -> _ForeignClient:
        name = f"tandem_parity_{uuid.uuid4().hex}"
        server = subprocess.Popen([_SERVER.resolve(), "--task=HalfCheetah-v5", f"--name={name}", *flags], cwd=tmp_path)
        deadline = time.monotonic() + _SECONDS
        while not Path("/dev/shm", name).exists():
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not open its region"
        client = _ForeignClient(name)
        started.append((server, client))
        return client

    yield start
    for server, client in started:
        client.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(_SECONDS) == 0
    assert list(tmp_path.iterdir()) == [], "no MUJOCO_LOG.TXT, no other trace"


def _assert_close(found: npt.NDArray[Any], expected: npt.ArrayLike) -> None:
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-6, atol=1e-6)


def test_an_episode_without_noise_equals_gymnasiums_to_its_truncation(serve: Any) -> None:
    """1,000 random actions: observations, rewards and ends; then the next episode's start."""
    client = serve("--num_envs=2", "--reset_noise_scale=0", "--threads=2")
    env = gymnasium.make("HalfCheetah-v5", reset_noise_scale=0)
    expected, _ = env.reset(seed=0)
    assert (client.obs_size, client.act_size) == (17, 6)
    for row in client.obs:
        _assert_close(row, expected)
    start = client.obs.copy()
    actions = np.random.default_rng(0).uniform(-1, 1, (1000, 6)).astype(np.float32)
    for step, action in enumerate(actions):
        client.actions[:] = action
        result = client.step()
        expected, reward, terminated, truncated, _ = env.step(action)
        # A foreign client gets SAME_STEP: the last observation lies in final_obs.
        for row in client.final_obs if truncated else result.obs:
            _assert_close(row, expected)
        _assert_close(result.rewards, [float(reward)] * 2)
        assert result.terminateds.tolist() == [terminated] * 2, step
        assert result.truncateds.tolist() == [truncated] * 2, step
    assert truncated, "Gymnasium's episode ended with the last action"
    np.testing.assert_array_equal(client.obs, start)
    env.close()


def test_seeded_episodes_are_gymnasiums(serve: Any) -> None:
    """`--seed=N`: environment i starts exactly where reset(seed=N + i) starts, steps alike, and so do later resets."""
    client = serve("--num_envs=4", "--seed=4294967294")  # the last two seeds have more than 32 bits
    envs = [gymnasium.make("HalfCheetah-v5") for _ in range(4)]
    starts = [env.reset(seed=4294967294 + i)[0] for i, env in enumerate(envs)]
    np.testing.assert_array_equal(client.obs, np.asarray(starts, np.float32))
    rng = np.random.default_rng(0)
    for _ in range(3):
        for _ in range(50):
            client.actions[:] = rng.uniform(-1, 1, (4, 6))
            result = client.step()
            for env, action, obs, reward in zip(envs, client.actions, result.obs, result.rewards, strict=True):
                expected, expected_reward, *_ = env.step(action)
                _assert_close(obs, expected)
                _assert_close(reward, float(expected_reward))
        client.resets[:] = 1
        obs = client.step().obs
        assert not client.resets.any(), "the engine clears the flags"
        np.testing.assert_array_equal(obs, np.asarray([env.reset()[0] for env in envs], np.float32))
    for env in envs:
        env.close()


if __name__ == "__main__":
    pytest_main.run(__file__)
