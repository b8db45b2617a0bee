"""A Ray cluster of several nodes on this machine: each has a raylet and an object store of its own."""

import contextlib
import os
import re
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import ray
from ray.cluster_utils import Cluster

# What docs/ray.md tells users to set: a node that does not answer is removed after three failed checks.
HEALTH = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
RUNS = int(os.environ.get("TANDEM_FAULT_RUNS", "1"))  # of each fault, at random moments
_STORE_BYTES = 100 << 20
# Marks the processes of a test in their environments: actors, and so engines, inherit it from the raylets.
_MARK = "TANDEM_RAY_TEST"
os.environ.setdefault(_MARK, uuid.uuid4().hex)


class LocalCluster:
    """The nodes, beside the head, which has no cores and so no worker.

    Attributes:
      address: For `ray.init`.
      nodes: Ray's objects for them.
    """

    def __init__(self, cluster: Any) -> None:
        """Takes a cluster with a head alone."""
        self._cluster = cluster
        self.address: str = cluster.address
        self.nodes: list[Any] = []
        # The kernel kills a node's processes when the thread that started them ends, as Ray asks it to.
        self._starter = ThreadPoolExecutor(1)

    def add(self, cores: int = 1, **resources: float) -> Any:
        """Starts a node and returns Ray's object for it."""

        def start() -> Any:
            # Ray also sets handlers of signals, which only the main thread may do; those of the head are enough.
            with mock.patch("signal.signal"):
                return self._cluster.add_node(num_cpus=cores, object_store_memory=_STORE_BYTES, resources=resources)

        node = self._starter.submit(start).result()
        self.nodes.append(node)
        return node

    def close(self) -> None:
        """Ends the thread, and so the nodes."""
        self._starter.shutdown()

    def raylet(self, node: Any) -> psutil.Process:
        """Returns the process of a node's raylet."""
        return psutil.Process(_raylet(node).pid)

    def is_dead(self, node: Any) -> bool:
        """Returns whether a node's raylet has ended. Its workers notice that only after this call, as its parent's."""
        return _raylet(node).poll() is not None

    def kill(self, node: Any) -> None:
        """Kills a node's raylet; its other processes notice."""
        _raylet(node).kill()
        _raylet(node).wait()

    def have(self, nodes: int) -> None:
        """Removes what is left of dead nodes, then living nodes or adds some, until there are so many."""
        dead = [node for node in self.nodes if self.is_dead(node)]
        for node in dead + [node for node in self.nodes if node not in dead][nodes:]:
            self._cluster.remove_node(node, allow_graceful=False)
            self.nodes.remove(node)
        while len(self.nodes) < nodes:
            self.add()
        expect(lambda: sum(node["Alive"] for node in ray.nodes()) == nodes + 1, f"a head and {nodes} nodes")


def _raylet(node: Any) -> "subprocess.Popen[bytes]":
    process: subprocess.Popen[bytes] = node.all_processes["raylet"][0].process
    return process


@contextlib.contextmanager
def local_cluster(nodes: int, *, cores: int = 1, system: dict[str, Any] | None = None) -> Iterator[LocalCluster]:
    """Starts a head and nodes, and connects; ends them all, and checks that nothing is left.

    Args:
      nodes: Their number.
      cores: Of each, as Ray counts them.
      system: Ray's own settings besides `HEALTH`.
    """
    os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0")
    before = shared_memory()
    # Ray's sockets lie in this folder, and a socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = (
            folder  # Ray's own file with the address of the latest cluster lies in its folder ray
        )
        Path(folder, "ray").mkdir()
        head = {
            "num_cpus": 0,
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
            "temp_dir": f"{folder}/ray",
            "_system_config": {**HEALTH, **(system or {})},
        }
        cluster = Cluster(initialize_head=True, head_node_args=head)
        local = LocalCluster(cluster)
        try:
            ray.init(address=cluster.address, log_to_driver=False)
            for _ in range(nodes):
                local.add(cores)
            yield local
        finally:
            ray.shutdown()
            cluster.shutdown()
            local.close()
        expect(lambda: not engines(), "no engine")
        expect(lambda: shared_memory() <= before, "nothing more in /dev/shm")


def marked() -> Iterator[psutil.Process]:
    """Yields the processes that this test's cluster started: Ray's, actors, and engines."""
    for process in psutil.process_iter(["status"]):
        with contextlib.suppress(psutil.Error):
            if process.info["status"] != psutil.STATUS_ZOMBIE and process.environ().get(_MARK) == os.environ[_MARK]:
                yield process


def engines() -> list[int]:
    """Returns the process ids of the engines and supervisors that this test's actors started."""
    found = []
    for process in marked():
        with contextlib.suppress(psutil.Error):
            if any("--launcher_fd" in word for word in process.cmdline()):
                found.append(process.pid)
    return found


def shared_memory() -> set[str]:
    """Returns the names of regions in /dev/shm that `make_vec` chose, without those of other living programs."""
    own = {process.pid for process in marked()} | {os.getpid()}
    found = set()
    for path in Path("/dev/shm").iterdir():
        name = re.match(r"\.?tandem-(\d+)-", path.name)
        if name and (int(name[1]) in own or not psutil.pid_exists(int(name[1]))):
            found.add(path.name)
    return found


def expect(condition: Callable[[], bool], what: str, timeout: float = 30.0) -> float:
    """Waits for a condition, and returns how many seconds that took; AssertionError: it does not become true."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout, f"expected {what} within {timeout:g} s"
        time.sleep(0.02)
    return time.monotonic() - started
