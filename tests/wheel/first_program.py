"""A user's first program, run in a clean environment; it also prints the files that its two processes have mapped.

Prints a JSON object: version, rewards (the sum), client and engine (the mapped files of each).
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np

import tandem


def mapped_files(pid: int | str) -> list[str]:
    """Returns the files that a process has mapped, without regions."""
    lines = Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return sorted(path for path in paths if path.startswith("/") and not path.startswith("/dev/"))


for module in sys.argv[1:]:  # for example mujoco, to load it in the same process
    importlib.import_module(module)

rng = np.random.default_rng(0)
total = 0.0
with tandem.launch_engine("HalfCheetah-v5", num_envs=4, seed=0) as engine:
    with tandem.SharedMemoryClient(engine.name) as client:
        client.reset(seed=0)
        for _ in range(200):
            client.actions[:] = rng.uniform(-1, 1, client.actions.shape)
            obs, rewards, dones = client.step(client.actions)
            total += float(rewards.sum())
    assert engine.poll() is None and obs.shape == (4, 17) and not dones.any()
    report = {"engine": mapped_files(engine.pid), "client": mapped_files("self")}
print(json.dumps({"version": tandem.__version__, "rewards": total, **report}))
