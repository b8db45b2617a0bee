"""Steps a client whose engine has answered each step before it is sent, so that `step` never waits.

    python_steps.py REGION HANG STEPS

instructions_test counts the instructions of the steps. HANG is the action after which the trivial engine answers no
more: then this program stores the numbers of the answers itself.
"""

import mmap
import struct
import sys

import numpy as np

import tandem

_FRAME_SEQ = 128  # offset of the number of the last answered exchange


def _await_hang(client: tandem.SharedMemoryClient) -> None:
    """Waits until the engine is inside the step that it will not answer."""
    while True:
        try:
            client.recv(0.1)
        except tandem.StepTimeout as error:
            if "stepping" in str(error):
                return


def main(name: str, hang: float, steps: int) -> None:
    """Steps the client of a region.

    Args:
      name: The region of a trivial engine without exchanges so far.
      hang: The action after which the engine answers no more.
      steps: The number of steps.
    """
    with (
        open(f"/dev/shm/{name}", "r+b") as file,
        mmap.mmap(file.fileno(), 0) as region,
        tandem.SharedMemoryClient(name, timeout=60) as client,
    ):
        actions = np.full((client.num_envs, client.act_size), hang, np.float32)
        client.send(actions)
        _await_hang(client)
        struct.pack_into("<Q", region, _FRAME_SEQ, 1)
        client.recv()
        actions.fill(1)
        for number in range(2, steps + 2):
            struct.pack_into("<Q", region, _FRAME_SEQ, number)
            client.step(actions)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
