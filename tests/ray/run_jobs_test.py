"""Runs of the daemon as jobs of Ray: a cluster with Ray's job server, a daemon, and what may fail."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tandem.telemetry import Run, RunStatus, TrainerClient
from tests.ray.clusters import expect

_DAEMON = os.environ.get("TANDEM_DAEMON_PROGRAM", "")
_PORT, _DASHBOARD = 6397, 8297
_ADDRESS = f"http://127.0.0.1:{_DASHBOARD}"
_SECS = 120.0

pytestmark = pytest.mark.skipif(not _DAEMON, reason="tools/test --with ray sets TANDEM_DAEMON_PROGRAM")

_WORKER = """
import json, sys, time
count, secs = int(sys.argv[1]), float(sys.argv[2])
begin = time.monotonic()
for index in range(count):
    print(json.dumps({"event_type": "step", "episode": 0, "step_index": index, "reward": index}))
    if index % 100 == 99:
        time.sleep(max(0.0, begin + secs * index / count - time.monotonic()))
print(json.dumps({"event": "run_completed"}))
"""


class Lane:
    """A daemon whose runs are jobs of Ray.

    Attributes:
      client: Its client.
      folder: The test's folder.
    """

    def __init__(self, folder: Path) -> None:
        """Starts the daemon."""
        self.folder = folder
        self._listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Starts the daemon, at its earlier address if it had one."""
        command = [_DAEMON, f"--data_dir={self.folder}/data", f"--listen={self._listen}"]
        variables = {**os.environ, "TANDEM_RAY_PYTHON": sys.executable}
        self._daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)
        assert self._daemon.stdout is not None
        (self._listen,) = re.findall(r"listening on (\S+)", self._daemon.stdout.readline())
        self.client = TrainerClient(self._listen)

    def stop(self) -> None:
        """Stops the daemon; its runs go on."""
        self.client.close()
        self._daemon.terminate()
        assert self._daemon.wait(60) == 0

    def submit(self, *arguments: str, **resources: float) -> str:
        """Submits a run and returns its run_id."""
        config = {
            "run_name": "test",
            "entry_point": sys.executable,
            "arguments": list(arguments),
            "environment": {},
            "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0}},
            "artifacts": {},
            "metadata": {"tandem": {"ray": {"address": _ADDRESS, "resources": resources}}},
        }
        return self.client.submit(config).run_id

    def steps(self, run_id: str) -> int:
        """Returns the number of the run's durable steps."""
        return self.client.describe(run_id).runs[0].steps

    def await_steps(self, run_id: str, count: int) -> None:
        """Waits for durable steps."""
        expect(lambda: self.steps(run_id) >= count, f"{count} steps of {run_id}", _SECS)

    def await_end(self, run_id: str) -> Run:
        """Waits for the run's end."""

        def run() -> Run:
            (found,) = (run for run in self.client.runs() if run.run_id == run_id)
            return found

        expect(lambda: run().status.final, f"the end of {run_id}", _SECS)
        return run()

    def processes(self, run_id: str) -> list[psutil.Process]:
        """Returns the living processes of the run: those that have its name in their environment."""
        found = []
        for process in psutil.process_iter(["status"]):
            with contextlib.suppress(psutil.Error):
                if process.info["status"] != psutil.STATUS_ZOMBIE and process.environ().get("TANDEM_RUN_ID") == run_id:
                    found.append(process)
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A head with Ray's job server."""
    ray = str(Path(sys.executable).with_name("ray"))
    with (
        tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        variables = {
            **os.environ,
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "TANDEM_RAY_PYTHON": sys.executable,
            "XDG_STATE_HOME": f"{folder}/state",
        }
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("XDG_STATE_HOME", f"{folder}/state")
        command = [ray, "start", "--head", "--block", f"--port={_PORT}", "--num-cpus=2", "--disable-usage-stats"]
        command += ["--include-dashboard=true", f"--dashboard-port={_DASHBOARD}", f"--temp-dir={folder}/ray"]
        command += [f"--object-store-memory={100 << 20}", "--node-ip-address=127.0.0.1"]
        log = Path(folder, "log").open("wb")
        with log, subprocess.Popen(command, env=variables, start_new_session=True, stdout=log, stderr=log) as head:
            try:
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(head.pid, signal.SIGTERM)
                try:
                    head.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(head.pid, signal.SIGKILL)


@pytest.fixture
def lane(cluster: None, tmp_path: Path) -> Iterator[Lane]:
    """A daemon; at the end no process of its runs is left."""
    del cluster
    lane = Lane(tmp_path)
    try:
        yield lane
        run_ids = [run.run_id for run in lane.client.runs()]
        for run_id in run_ids:
            lane.client.cancel(run_id)
        for run_id in run_ids:
            expect(lambda run_id=run_id: not lane.processes(run_id), f"no process of {run_id}")  # type: ignore[misc]
    finally:
        lane.stop()


def test_a_run_is_a_job_of_ray(lane: Lane) -> None:
    """Ray starts its worker; all events come; a restart of the daemon changes nothing."""
    run_id = lane.submit("-c", _WORKER, "20000", "5", CPU=1)
    lane.await_steps(run_id, 1000)
    lane.stop()
    time.sleep(1)
    lane.start()
    run = lane.await_end(run_id)
    assert run.status == RunStatus.TERM, run
    assert lane.steps(run_id) == 20000


def test_a_failed_worker_is_a_fault(lane: Lane) -> None:
    """With its exit code and the end of its stderr, as on the daemon's machine."""
    run = lane.await_end(lane.submit("-c", "import sys; sys.exit('no such knee')"))
    assert run.status == RunStatus.FAULT
    assert "exited with code 1" in (run.failure_reason or "") and "no such knee" in (run.failure_reason or ""), run


def test_a_cancel_ends_the_job(lane: Lane) -> None:
    """When it returns, no process of the worker is left."""
    run_id = lane.submit("-c", "import subprocess; subprocess.run(['sleep', '1000'])", CPU=1)
    expect(lambda: len(lane.processes(run_id)) == 2, "the worker and its child", _SECS)
    began = time.monotonic()
    lane.client.cancel(run_id)
    print(f"cancelled after {time.monotonic() - began:.1f} s")
    assert not lane.processes(run_id)
    run = lane.await_end(run_id)
    assert run.status == RunStatus.TERM and run.failure_reason == "cancelled", run


def test_a_cancel_ends_a_waiting_job(lane: Lane) -> None:
    """One whose resources no node has: it would wait without end."""
    run_id = lane.submit("-c", "print(1)", simulation=1)
    (described,) = lane.client.describe(run_id).runs
    assert "Ray" in described.waiting_for
    time.sleep(5)
    lane.client.cancel(run_id)
    run = lane.await_end(run_id)
    assert run.status == RunStatus.TERM and run.failure_reason == "cancelled", run


def test_a_killed_job_ends_its_worker(lane: Lane) -> None:
    """The death of Ray's own process, as with its raylet."""
    run_id = lane.submit("-c", _WORKER, "1000000", "1000", CPU=1)
    lane.await_steps(run_id, 100)
    (job,) = (
        process
        for process in psutil.process_iter(["cmdline"])
        if any("JobSupervisor" in word or "_ray_internal_job_actor" in word for word in process.info["cmdline"] or [])
        and any(child.pid for child in process.children(recursive=True) if run_id in " ".join(child.cmdline()))
    )
    job.kill()
    run = lane.await_end(run_id)
    print(run.failure_reason)
    assert run.status == RunStatus.FAULT, run
    expect(lambda: not lane.processes(run_id), "no process of the run")


def test_a_killed_proxy_is_replaced(lane: Lane) -> None:
    """The worker goes on, and so do its events."""
    run_id = lane.submit("-c", _WORKER, "20000", "8", CPU=1)
    lane.await_steps(run_id, 1000)
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "--remote" in words and f"--run_id={run_id}" in words:
            process.kill()
    run = lane.await_end(run_id)
    assert run.status == RunStatus.TERM, run
    assert lane.steps(run_id) == 20000


def test_an_unknown_ray_is_waited_for(lane: Lane) -> None:
    """The run shows what it waits for; a cancel ends it without a word from Ray."""
    config: dict[str, Any] = json.loads(lane.client.describe(lane.submit("-c", "print(1)")).runs[0].config_json)
    config["metadata"]["tandem"]["ray"]["address"] = "http://127.0.0.1:9"
    run_id = lane.client.submit(config).run_id
    log = lane.folder / "data" / "runs" / run_id / "proxy.log"
    expect(lambda: log.exists() and "127.0.0.1:9" in log.read_text("utf-8"), "a line of the log", _SECS)
    lane.client.cancel(run_id)
    assert lane.await_end(run_id).failure_reason == "cancelled"
