"""A real Jupyter kernel whose cells are interrupted and run again, and which is restarted."""

import os
import queue
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

_SECONDS = 120  # the watchdog's limit for a cell

_MAKE = """
import os, signal
import numpy as np, tandem
envs = tandem.make_vec("HalfCheetah-v5", num_envs=4, engine=tandem.EngineOptions(timeout=600))
obs, _ = envs.reset(seed=0)
actions = np.ones((4, 6), np.float32)
pid = envs.client.engine_pid
print(pid, envs.client.name)
"""


class _Notebook:
    """Runs cells one after the other, and may interrupt a running cell."""

    def __init__(self, manager: KernelManager) -> None:
        self._manager = manager
        self._client: BlockingKernelClient = manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=_SECONDS)

    def run(self, cell: str, interrupt_after: str | None = None) -> tuple[str, str]:
        """Runs a cell, interrupts it when it has printed the given text, and returns its output and its error."""
        output, error = "", ""
        request = self._client.execute(cell)
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            try:
                message = self._client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                output += content["text"]
                if interrupt_after is not None and interrupt_after in output:
                    interrupt_after = None
                    self._manager.interrupt_kernel()
            elif message["msg_type"] == "error":
                error = content["ename"]
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                return output, error
        raise AssertionError(f"the cell did not end: {cell!r}, which said {output!r}")

    def close(self) -> None:
        self._client.stop_channels()


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelManager]:
    """Starts a kernel with this test's module search path; all its files are in the test's folder."""
    for variable in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    kernel = KernelManager(kernel_name="python3")
    kernel.start_kernel()
    yield kernel
    kernel.shutdown_kernel(now=True)


def test_an_interrupted_cell_leaves_engine_and_environments_usable(manager: KernelManager) -> None:
    """The interrupt comes in a training loop, and in a step that waits for a stopped engine."""
    notebook = _Notebook(manager)
    made, error = notebook.run(_MAKE)
    assert error == ""
    loop = 'print("started")\nwhile True: envs.step(actions)'
    assert notebook.run(loop, interrupt_after="started")[1] == "KeyboardInterrupt"
    again = "print(np.array_equal(envs.reset(seed=0)[0], obs), envs.client.engine_pid == pid)"
    assert notebook.run(again) == ("True True\n", "")

    stuck = 'os.kill(pid, signal.SIGSTOP)\nenvs.send(actions)\nprint("stopped")\nenvs.recv()'
    assert notebook.run(stuck, interrupt_after="stopped")[1] == "KeyboardInterrupt"
    assert notebook.run("envs.step(actions)")[1] == "StepPending"
    assert notebook.run("os.kill(pid, signal.SIGCONT)\n" + again) == ("True True\n", "")
    assert notebook.run("envs.close()") == ("", "")
    assert not Path("/dev/shm", made.split()[1]).exists()
    notebook.close()
