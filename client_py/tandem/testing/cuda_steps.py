"""Steps an engine that writes on a GPU, in two processes, and compares each observation with what the engine wrote.

    python -m tandem.testing.cuda_steps --steps 1000000

TANDEM_CUDA_LIBRARY names the driver: the stand-in, or libcuda.so.1 of a machine with a GPU. With the stand-in,
TANDEM_STANDIN_INLINE=15 makes it several times faster.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import tandem
from tandem.testing.cuda_engine import expected_obs
from tandem.testing.standin import StandIn

_ENGINE = Path(__file__).with_name("cuda_engine.py")


def run(steps: int, num_envs: int = 3) -> float:
    """Returns steps a second. Raises AssertionError at the first observation that differs."""
    gpu = StandIn()
    with (
        tandem.launch_engine(
            num_envs=num_envs, server=_ENGINE, timeout=60, flags=["--fills_cpu=0", "--pictures=0"]
        ) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        client.reset(seed=[0] * num_envs)
        actions = client.actions
        zero = expected_obs(np.zeros(num_envs, np.int64))
        stream = gpu.stream(blocking=False)
        array = client.obs_cuda
        tensor = gpu.take(array, stream)
        start = time.monotonic()
        for step in range(1, steps + 1):
            client.step(actions)
            array.wait_on(stream)
            found = tensor.values(stream)
            expected = zero + 1000 * (step % 10_000)
            if not np.array_equal(found, expected):
                raise AssertionError(f"step {step}: expected {expected}, found {found}")
        rate = steps / (time.monotonic() - start)
        tensor.free()
        gpu.destroy(stream)
        return rate


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000, help="how many; 20,000 by default")
    arguments = parser.parse_args()
    print(f"ok {arguments.steps:,} steps, each observation equal, {run(arguments.steps):,.0f} a second")
