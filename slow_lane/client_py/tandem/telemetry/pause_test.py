"""`WorkerSession.pause_point` in a worker of the real daemon."""

import concurrent.futures
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.telemetry import DaemonTimeout, RunStatus, TrainerClient
from tandem.telemetry.connection import Connection
from tandem.telemetry.pause_watch import PauseWatch
from tandem.testing.daemons import Daemon, Gate, await_stopped, running_daemon, wait_until
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

# Each update begins and ends with an event. A pause between them stops the worker inside the update.
_WORKER = """
import itertools
from tandem.telemetry import TrainerClient
def tell(event, **payload):
    print(json.dumps({"event": event, "payload": payload}), flush=True)
session = TrainerClient().register(os.environ["TANDEM_RUN_ID"], "learner", worker_kind="test", supports_pause=True)
for update in itertools.count():
    tell("begun", token=session.token)
    time.sleep(0.2)
    requested = session.pause_requested
    tell("done", requested=requested)
    if requested and session.pause_point():
        tell("continued")
"""


class _Worker:
    """The worker's run, and what it has printed."""

    def __init__(self, daemon: Daemon, client: TrainerClient, gate: Gate) -> None:
        config = gate.program(_WORKER)
        config["environment"]["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        self.run_id = client.submit(config).run_id
        self._output = daemon.output_of(self.run_id)
        self._client = client
        self.until("done", 1)
        wait_until(lambda: self.status is RunStatus.EXEC, "the run to be EXEC")

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._client.describe(self.run_id).runs[0].worker_pid

    @property
    def status(self) -> RunStatus:
        """The run's state."""
        return self._client.describe(self.run_id).runs[0].run.status

    def events(self) -> list[dict[str, Any]]:
        """Returns the printed events."""
        text = self._output.read_text("utf-8") if self._output.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def count(self, event: str) -> int:
        """Returns how many events of a name are printed."""
        return len([each for each in self.events() if each["event"] == event])

    def until(self, event: str, count: int) -> None:
        """Waits until the number of events of a name is at least `count`."""
        wait_until(lambda: self.count(event) >= count, f"{count} {event}")


@pytest.fixture(name="daemon")
def daemon_fixture(tmp_path: Path) -> Iterator[Daemon]:
    """Starts a daemon."""
    with running_daemon(tmp_path / "data") as daemon:
        yield daemon


@pytest.fixture(name="client")
def client_fixture(daemon: Daemon) -> Iterator[TrainerClient]:
    """Connects a client to the daemon."""
    with TrainerClient(daemon.address) as client:
        yield client


@pytest.fixture(name="gate")
def gate_fixture(tmp_path: Path) -> Gate:
    """Makes a gate for the test's workers."""
    return Gate(tmp_path / "gate")


def test_a_worker_is_stopped_at_its_pause_point(daemon: Daemon, client: TrainerClient, gate: Gate) -> None:
    """The update is complete, and the worker begins no other one until the run is resumed."""
    worker = _Worker(daemon, client, gate)
    (registered,) = client.describe(worker.run_id).runs[0].workers
    assert (registered.worker_id, registered.worker_kind, registered.supports_pause) == ("learner", "test", True)
    for pauses in (1, 2):
        worker.until("begun", worker.count("begun") + 1)
        start = time.monotonic()
        client.pause(worker.run_id)
        assert time.monotonic() - start < 5
        assert worker.status is RunStatus.PAUSE
        await_stopped(worker.pid)
        assert worker.events()[-1] == {"event": "done", "payload": {"requested": True}}
        client.resume(worker.run_id)
        worker.until("continued", pauses)
    client.cancel(worker.run_id)


def test_a_worker_hears_of_pauses_from_the_next_daemon(daemon: Daemon, client: TrainerClient, gate: Gate) -> None:
    """It registers again by itself, and its session has the new token."""
    worker = _Worker(daemon, client, gate)
    tokens = {event["payload"].get("token") for event in worker.events()}
    daemon.kill()
    daemon.start()
    wait_until(lambda: {event["payload"].get("token") for event in worker.events()} > tokens, "a new token")
    client.pause(worker.run_id)
    while worker.events()[-1]["payload"] != {"requested": True}:
        client.resume(worker.run_id)  # its new session did not hear of the daemon's pauses yet
        worker.until("begun", worker.count("begun") + 1)
        client.pause(worker.run_id)
    client.resume(worker.run_id)
    worker.until("continued", 1)


def test_a_worker_goes_on_without_the_daemon_that_paused_it(daemon: Daemon, client: TrainerClient, gate: Gate) -> None:
    """Its daemon is killed, and a user continues its processes by SIGCONT."""
    worker = _Worker(daemon, client, gate)
    client.pause(worker.run_id)
    pid = worker.pid
    daemon.kill()
    os.kill(pid, signal.SIGCONT)
    worker.until("continued", 1)
    daemon.start()


def test_a_session_without_pauses_never_waits(daemon: Daemon, client: TrainerClient, gate: Gate) -> None:
    """`pause_point` returns at once; so does that of a session that another one replaced."""
    run_id = client.submit(gate.program("step(0)\nsys.stdout.flush()\nwait_for('end')")).run_id
    wait_until(lambda: client.describe(run_id).runs[0].run.status == RunStatus.EXEC, "the run")
    plain = client.register(run_id, "plain")
    assert not plain.pause_requested and not plain.pause_point()
    earlier = client.register(run_id, "learner", supports_pause=True)
    newer = client.register(run_id, "learner", supports_pause=True)
    pausing = threading.Thread(target=client.pause, args=(run_id,))
    pausing.start()
    wait_until(lambda: newer.pause_requested, "the request")
    assert not earlier.pause_requested and not earlier.pause_point()
    resuming = threading.Thread(target=client.resume, args=(run_id,))
    resuming.start()  # after the pause
    assert newer.pause_point()
    pausing.join()
    resuming.join()
    assert client.describe(run_id).runs[0].run.status == RunStatus.EXEC
    gate.open("end")


def test_a_worker_that_registers_many_times_at_once_hears_of_pauses(
    daemon: Daemon, client: TrainerClient, gate: Gate
) -> None:
    """One after another registers: the daemon listens to the session that is left."""
    run_id = client.submit(gate.program("step(0)\nsys.stdout.flush()\nwait_for('end')")).run_id
    wait_until(lambda: client.describe(run_id).runs[0].run.status == RunStatus.EXEC, "the run")
    for _ in range(10):
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            made = [threads.submit(client.register, run_id, "learner", supports_pause=True) for _ in range(8)]
        sessions = [each.result() for each in made]
        pausing = threading.Thread(target=client.pause, args=(run_id,))
        pausing.start()
        wait_until(lambda: any(each.pause_requested for each in sessions) or not pausing.is_alive(), "the pause")  # noqa: B023
        resuming = threading.Thread(target=client.resume, args=(run_id,))
        resuming.start()  # after the pause
        assert any([each.pause_point() for each in sessions])
        pausing.join()
        resuming.join()
    gate.open("end")


def test_a_session_that_the_daemon_does_not_listen_to_is_an_error(
    daemon: Daemon, client: TrainerClient, gate: Gate
) -> None:
    """The daemon is stopped while it would begin to listen; nothing is left of the session."""
    run_id = client.submit(gate.program("step(0)\nsys.stdout.flush()\nwait_for('end')")).run_id
    wait_until(lambda: client.describe(run_id).runs[0].run.status == RunStatus.EXEC, "the run")
    token = client.register(run_id, "learner").token
    connection = Connection(daemon.address)
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        with pytest.raises(DaemonTimeout, match="expected a message that the worker gets pauses within 0.3 s"):
            PauseWatch(connection, run_id, token, lambda: token, 0.3)
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    connection.close()
    gate.open("end")
