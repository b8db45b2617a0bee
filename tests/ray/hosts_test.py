"""`tandem.ray` on two hosts, which are network namespaces: what is sent, and a cut cable."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ray.clusters import HEALTH, RUNS, engines, expect, shared_memory
from tests.ray.hosts import TwoHosts, can_make_hosts

pytestmark = pytest.mark.skipif(not can_make_hosts(), reason="network namespaces need root and the program ip")

_PORT = 6399


@pytest.fixture
def hosts() -> Iterator[TwoHosts]:
    """Two hosts with a node of Ray each; the first is the head, without cores."""
    before = shared_memory()
    hosts = TwoHosts()
    variables = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    variables |= {f"RAY_{name}": str(value) for name, value in HEALTH.items()}
    ray = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats"]
    store = f"--object-store-memory={100 << 20}"
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder, hosts.up():
        started = []
        quiet: dict[str, Any] = {"env": variables, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            head = [f"--port={_PORT}", "--head", "--num-cpus=1", "--include-dashboard=false", f"--temp-dir={folder}"]
            started.append(hosts.start(0, [*ray, *head, store, f"--node-ip-address={hosts.addresses[0]}"], **quiet))
            door = [*hosts.on(0), "bash", "-c", f"exec 3<>/dev/tcp/{hosts.addresses[0]}/{_PORT}"]
            expect(lambda: subprocess.run(door, stderr=subprocess.DEVNULL).returncode == 0, "the head's port")
            other = [f"--address={hosts.addresses[0]}:{_PORT}", "--num-cpus=1"]
            started.append(hosts.start(1, [*ray, *other, store, f"--node-ip-address={hosts.addresses[1]}"], **quiet))
            yield hosts
        finally:
            for process in started:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            for process in started:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
    expect(lambda: not engines(), "no engine")
    expect(lambda: shared_memory() <= before, "nothing more in /dev/shm")


class _Training:
    """A program of `remote_training` on the first host."""

    def __init__(self, hosts: TwoHosts, horizon: int) -> None:
        address = f"{hosts.addresses[0]}:{_PORT}"
        command = [sys.executable, "-m", "tests.ray.remote_training", address, "2", str(horizon)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = hosts.start(0, command, **pipes)

    def await_event(self, name: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):  # Ray prints there, too, such as the death of a node
                continue
            event: dict[str, Any] = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"expected the event {name}, found the end of the training")

    def end(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        ended = self.await_event("ended")
        assert self._process.wait(60) == 0
        return ended


def test_only_rollouts_and_weights_cross_the_cable(hosts: TwoHosts) -> None:
    """The bytes on the cable are little more than the arrays of the remote worker's rollouts."""
    training = _Training(hosts, horizon=2048)
    training.await_event("started")
    before = hosts.sent_bytes(1)
    time.sleep(25)
    ended = training.end()
    sent = hosts.sent_bytes(1) - before
    (arrays,) = (size for host, size in ended["sent"].items() if hosts.addresses[1] in host)
    print(f"{sent / 1e6:.2f} MB sent, {arrays / 1e6:.2f} MB of arrays: ratio {sent / arrays:.4f}")
    # A rollout that was sent and not collected is 0.6 MB; packets have headers, and Ray's processes talk.
    assert arrays > 10e6 and sent < 1.02 * arrays


@pytest.mark.parametrize("run", range(RUNS))
def test_a_cut_cable_costs_the_rollouts_of_one_host(run: int, hosts: TwoHosts) -> None:
    """NodeLost comes with the health check; the training goes on, and uses the host again after it restarted."""
    training = _Training(hosts, horizon=200)
    training.await_event("started")
    time.sleep(2 + np.random.default_rng().uniform(0, 2))
    hosts.set_cable(False)
    cut = time.time()
    loss = training.await_event("loss")
    print(f"{loss['kind']} {loss['time'] - cut:.1f} s after the cut; {loss['rollouts']} rollouts")
    assert loss["kind"] == "NodeLost" and loss["time"] - cut < 10
    time.sleep(2)
    ended = training.end()
    assert ended["workers"] == 1 and ended["requested"] == sum(
        ended[name] for name in ("delivered", "stale", "lost", "outstanding", "untaken")
    )
    hosts.set_cable(True)
    expect(lambda: not engines(), "the end of the host's engine, once its raylet learns that it was removed", 90)
