"""Infos and the task's description, read by a program that knows only the promised offsets."""

import json
import signal
import struct
import subprocess
import time
import uuid
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

SERVER = Path("engine_adapter/server/server")
NUM_ENVS, OBS_SIZE, ACT_SIZE, SEED = 2, 11, 3, 7
DEADLINE_SECS = 60.0
ALIGNMENT = 128  # of each part of the infos section


@pytest.fixture
def region() -> Iterator[SharedMemory]:
    """Serves two Hopper-v5, and maps their region as any Python program can."""
    name = f"infos_test_{uuid.uuid4().hex}"
    server = subprocess.Popen([SERVER, "--task=Hopper-v5", f"--name={name}", "--num_envs=2", f"--seed={SEED}"])
    deadline = time.monotonic() + DEADLINE_SECS
    while not Path("/dev/shm", name).exists():
        assert server.poll() is None and time.monotonic() < deadline, "no region"
        time.sleep(0.001)
    shm = SharedMemory(name=name)
    resource_tracker.unregister(f"/{shm.name}", "shared_memory")
    yield shm
    shm.close()
    server.send_signal(signal.SIGTERM)
    assert server.wait(DEADLINE_SECS) == 0


def _length(info: dict[str, Any]) -> int:
    return 1 if info["length"] is None else info["length"]


def test_infos_of_whole_episodes_are_gymnasiums(region: SharedMemory) -> None:
    """Compares infos of steps, of an episode's last step, and of the reset in the same exchange."""
    assert region.buf is not None
    data = region.buf

    def field(kind: str, offset: int) -> int:
        value: int = struct.unpack_from(kind, data, offset)[0]
        return value

    def array(offset: int, dtype: type, *shape: int) -> Any:
        return np.frombuffer(data, dtype, int(np.prod(shape)), offset).reshape(shape).copy()

    info_size, begin, size = field("<I", 668), field("<Q", 704), field("<Q", 712)
    part = -(-NUM_ENVS * info_size * 8 // ALIGNMENT) * ALIGNMENT
    description = json.loads(bytes(data[begin + 2 * part : begin + size]))
    assert info_size == sum(_length(info) for info in description["infos"])

    def check(part_offset: int, env: int, expected: dict[str, Any], at_reset: bool) -> None:
        row = list(array(part_offset, np.float64, NUM_ENVS, info_size)[env])
        found = {}
        for info in description["infos"]:
            values = [row.pop(0) for _ in range(_length(info))]
            if info["at_reset"] or not at_reset:
                found[info["name"]] = values[0] if info["length"] is None else values
        assert found == pytest.approx(expected, rel=1e-9)

    envs = [gymnasium.make("Hopper-v5") for _ in range(NUM_ENVS)]
    for i, env in enumerate(envs):
        expected, infos = env.reset(seed=SEED + i)
        np.testing.assert_array_equal(
            array(field("<Q", 384), np.float32, NUM_ENVS, OBS_SIZE)[i], expected.astype(np.float32)
        )
        check(begin, i, infos, at_reset=True)
    rng = np.random.default_rng(0)
    ended = 0
    for seq in range(1, 101):
        actions = rng.uniform(-1, 1, (NUM_ENVS, ACT_SIZE)).astype(np.float32)
        data[field("<Q", 392) : field("<Q", 392) + actions.nbytes] = actions.tobytes()
        struct.pack_into("<Q", data, 256, seq)
        deadline = time.monotonic() + DEADLINE_SECS
        while field("<Q", 128) != seq:
            assert time.monotonic() < deadline, "the engine did not answer"
        for i, env in enumerate(envs):
            expected, _, terminated, truncated, infos = env.step(actions[i])
            done = terminated or truncated
            obs = array(field("<Q", 688 if done else 384), np.float32, NUM_ENVS, OBS_SIZE)[i]
            np.testing.assert_allclose(obs, expected, rtol=1e-6, atol=1e-6)
            check(begin + part if done else begin, i, infos, at_reset=False)
            if done:
                ended += 1
                check(begin, i, env.reset()[1], at_reset=True)
    assert ended > 0
