"""The server as a foreign client sees it: multiprocessing.shared_memory, struct and NumPy, no Tandem code."""

import json
import signal
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SERVER = Path("engine_adapter/server/server")
_MAGIC = 0x4C524243
_SECONDS = 60  # a watchdog: how long anything may take
_FLOAT = np.dtype(np.float32)
_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True)
class Result:
    """What one exchange left in the region, copied."""

    obs: npt.NDArray[np.float32]  # [num_envs, obs_size]
    rewards: npt.NDArray[np.float32]  # [num_envs]
    terminateds: npt.NDArray[np.uint8]  # [num_envs]
    truncateds: npt.NDArray[np.uint8]  # [num_envs]


class ForeignClient:
    """What anyone can write against the documented offsets."""

    def __init__(self, name: str) -> None:
        """Maps a region.

        Args:
          name: The region's name.
        """
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

    def step(self) -> Result:
        """Does one exchange: flagged environments are reset, all others stepped; SAME_STEP autoreset.

        Returns:
          What it left.
        """
        seq = self._read("Q", 256) + 1
        struct.pack_into("<Q", self._bytes, 256, seq)
        deadline = time.monotonic() + _SECONDS
        while self._read("Q", 128) != seq:
            assert time.monotonic() < deadline, "the engine did not answer"
        return Result(self.obs.copy(), self.rewards.copy(), self.terminateds.copy(), self.truncateds.copy())

    def close(self) -> None:
        """Unmaps the region."""
        del self.obs, self.actions, self.rewards, self.resets, self.truncateds, self.terminateds, self.final_obs
        del self._bytes
        self._memory.close()

    def _read(self, kind: str, offset: int) -> int:
        value: int = struct.unpack_from("<" + kind, self._bytes, offset)[0]
        return value

    def _array(self, offset_at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        return np.ndarray(shape, dtype, self._bytes, self._read("Q", offset_at))


@contextmanager
def serving(task: str, *flags: str, **options: object) -> Iterator[ForeignClient]:
    """Runs a server, which has to leave nothing in its folder.

    Args:
      task: What it serves.
      flags: Its further flags.
      options: The task's.

    Yields:
      A client of it, of whose arrays no view may be left at the end.
    """
    name = f"tandem_parity_{uuid.uuid4().hex}"
    command = [
        str(SERVER.resolve()),
        f"--task={task}",
        f"--task_options={json.dumps(options)}",
        f"--name={name}",
        *flags,
    ]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(command, cwd=folder) as server:
        try:
            deadline = time.monotonic() + _SECONDS
            while not Path("/dev/shm", name).exists():
                assert server.poll() is None, "the server ended"
                assert time.monotonic() < deadline, "the server did not open its region"
            client = ForeignClient(name)
            yield client
            client.close()
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(_SECONDS) == 0
        assert list(Path(folder).iterdir()) == [], "no MUJOCO_LOG.TXT, no other trace"


def assert_close(found: npt.NDArray[Any], expected: npt.ArrayLike) -> None:
    """Asserts that numbers are Gymnasium's, but for the last digits of a float32.

    Args:
      found: The region's numbers.
      expected: Gymnasium's, of the same shape.
    """
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-6, atol=1e-6)
