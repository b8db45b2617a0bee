"""A client without Tandem's code: `multiprocessing.shared_memory`, `struct`, NumPy and the published offsets.

Drives a CounterEngine by the protocol's first description, checks every answer, and exits without closing the region:
on Python before 3.13, its resource tracker then unlinks the region's name.

  python foreign_client.py NAME
"""

import struct
import sys
import time
from multiprocessing.shared_memory import SharedMemory

import numpy as np

FRAME_SEQ, ACTION_SEQ = 128, 256
DEADLINE_SECS = 60.0


def attach(name: str) -> SharedMemory:
    """Waits for the region.

    Args:
      name: The region's name.

    Returns:
      The mapped region.
    """
    deadline = time.monotonic() + DEADLINE_SECS
    while True:
        try:
            return SharedMemory(name=name)
        except FileNotFoundError:
            assert time.monotonic() < deadline, "no region"
            time.sleep(0.001)


def main(name: str) -> None:
    """Steps and resets the engine of the region.

    Args:
      name: The region's name.
    """
    shm = attach(name)
    buffer = shm.buf
    assert buffer is not None
    magic, version, server_pid, _, mode = struct.unpack_from("<IIIIB", buffer, 0)
    num_envs, obs_size, act_size = struct.unpack_from("<III", buffer, 20)
    assert (magic, version, mode) == (0x4C524243, 1, 0)
    assert server_pid > 0
    obs_at, act_at, rewards_at, dones_at, resets_at = struct.unpack_from("<5Q", buffer, 384)
    obs = np.ndarray((num_envs, obs_size), np.float32, buffer, obs_at)
    actions = np.ndarray((num_envs, act_size), np.float32, buffer, act_at)
    rewards = np.ndarray((num_envs,), np.float32, buffer, rewards_at)
    dones = np.ndarray((num_envs,), np.uint8, buffer, dones_at)
    resets = np.ndarray((num_envs,), np.uint8, buffer, resets_at)

    def exchange() -> None:
        (action_seq,) = struct.unpack_from("<Q", buffer, ACTION_SEQ)
        struct.pack_into("<Q", buffer, ACTION_SEQ, action_seq + 1)
        deadline = time.monotonic() + DEADLINE_SECS
        while struct.unpack_from("<Q", buffer, FRAME_SEQ)[0] != action_seq + 1:
            assert time.monotonic() < deadline, "no answer"

    resets[:] = 1
    exchange()
    assert not resets.any(), "the engine clears the flags"
    assert (obs[:, 0] == 0).all()
    for step in range(1, 501):
        actions[:] = step + np.arange(num_envs)[:, None]
        exchange()
        assert (obs[:, 0] == step).all(), "each step is counted once"
        assert (obs[:, 1] == actions[:, 0]).all(), "each action arrives"
        np.testing.assert_allclose(rewards, actions.sum(axis=1), rtol=1e-6)
        assert not dones.any()
    resets[1] = 1
    exchange()
    assert obs[1, 0] == 0, "a flagged environment is reset and not stepped"
    assert obs[0, 0] == 501, "all others are stepped"
    print(f"header-only client: {num_envs} environments, 502 exchanges", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
