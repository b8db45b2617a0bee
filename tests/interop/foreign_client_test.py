"""Foreign clients and Tandem's client attach to one engine, one after the other."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import tandem

SERVER = Path("engine_adapter/conformance/reference/server")
FOREIGN_CLIENT = Path("tests/interop/foreign_client.py")
TIMEOUT_SECS = 120


def run_foreign_client(name: str) -> None:
    """Runs the header-only client in a new process, and fails if it fails."""
    done = subprocess.run(
        [sys.executable, str(FOREIGN_CLIENT), name], capture_output=True, text=True, timeout=TIMEOUT_SECS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "502 exchanges" in done.stdout


def check_own_client(name: str) -> None:
    """Attaches Tandem's client, and checks that it finds reset environments."""
    with tandem.SharedMemoryClient(name, timeout=TIMEOUT_SECS) as client:
        assert (client.obs[:, 0] == 0).all()
        obs, _, _ = client.step(np.ones((client.num_envs, client.act_size), dtype=np.float32))
        assert (obs[:, 0] == 1).all()


def test_foreign_and_own_clients_attach_one_after_the_other() -> None:
    """A foreign client may unlink the region's name at its exit; the next client still attaches by this name."""
    flags = ("--obs_size=8", "--act_size=2")
    with tandem.launch_engine(server=SERVER, num_envs=3, flags=flags) as engine:
        run_foreign_client(engine.name)
        run_foreign_client(engine.name)
        check_own_client(engine.name)
        run_foreign_client(engine.name)
        check_own_client(engine.name)
