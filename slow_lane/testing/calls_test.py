"""Calls to a daemon that stops, from clients that disappear, about runs that end, and with oversized messages."""

import contextlib
import itertools
import json
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from schema.protos import slow_lane_pb2 as slow_lane
from schema.protos import slow_lane_pb2_grpc as slow_lane_grpc
from schema.protos import trainer_pb2 as trainer
from schema.protos import trainer_pb2_grpc as trainer_grpc
from slow_lane.testing.daemon_fixture import (  # noqa: F401, two are fixtures
    EXEC,
    FAULT,
    TERM,
    Lane,
    lane_fixture,
    running_lane,
    watchdog,
)
from tandem.testing.daemons import DEADLINE_SECS, is_alive, wait_until

CTL = (sys.executable, "-m", "tandemctl")
MAX_MESSAGE_BYTES = 64 << 20

# Prints a step each millisecond until the gate opens, and no lifecycle event; writes the count to a file.
_PRINTS_ON = """
n = 0
while not os.path.exists(os.path.join(GATES, "end")):
    n += 1; steps(n, n); time.sleep(0.001)
open(sys.argv[2], "w").write(str(n))
"""


@pytest.mark.parametrize("ends_alone", [False, True])
def test_stopped_daemon_leaves_proxies_of_runs_that_print(lane: Lane, ends_alone: bool) -> None:
    """The same proxy serves the next daemon, and reports the exit of a worker that printed no lifecycle event."""
    printed = lane.scratch / "printed"
    run_id = lane.run(_PRINTS_ON, str(printed))
    lane.wait_for(run_id, EXEC)
    proxy = lane.wait_for_proxy(run_id)
    for _ in range(5):
        assert lane.stop() == 0
        lane.start()
        seen = lane.describe(run_id).steps
        wait_until(lambda seen=seen: lane.describe(run_id).steps > seen, "more steps")  # type: ignore[misc]
        assert lane.proxy(run_id) == proxy and lane.describe(run_id).proxy_starts == 1
    if ends_alone:
        assert lane.stop() == 0
        lane.open("end")
        wait_until(lambda: not lane.workers(), "the worker to end")
        assert is_alive(proxy)
        lane.start()
    lane.open("end")
    ended = lane.wait_for(run_id, TERM)
    assert not ended.failure_reason
    assert lane.describe(run_id).proxy_starts == 1
    assert lane.step_indices(run_id) == list(range(1, int(printed.read_text("utf-8")) + 1))


def test_vanished_watchers_of_runs_do_not_keep_the_daemon(lane: Lane) -> None:
    """Clients disconnect before, during and after the first record; the daemon then stops normally."""
    for _ in range(20):
        lane.cancel(lane.run("time.sleep(600)"))

    def watch_and_leave(records: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(lane.address, options=options) as channel:
            grpc.channel_ready_future(channel).result(DEADLINE_SECS)
            watch = trainer_grpc.TrainerServiceStub(channel).WatchRuns
            for _ in range(100):
                call = watch(trainer.WatchRunsRequest())
                for _ in zip(range(records), call, strict=False):
                    pass
                call.cancel()
            watch(trainer.WatchRunsRequest())  # not cancelled: ends with the connection

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(watch_and_leave, [0, 0, 0, 0, 1, 1, 2, 19]))
    wait_until(lambda: lane.daemon_state().watchers == 0, "the watches to end")
    assert lane.stop() == 0


class _Publisher:
    """An open PublishRunSteps call that sends one step for each `send`."""

    def __init__(self, lane: Lane, run_id: str) -> None:
        self._run_id = run_id
        self._steps: list[trainer.RunStep] = []
        self._more = threading.Semaphore(0)
        lane.trainer.RegisterWorker(trainer.RegisterWorkerRequest(run_id=run_id, worker_id="own"))
        self.call = lane.trainer.PublishRunSteps.future(self._messages(), timeout=2 * DEADLINE_SECS)

    def _messages(self) -> Iterator[trainer.RunStep]:
        for number in itertools.count(1):
            self._more.acquire()
            yield trainer.RunStep(run_id=self._run_id, worker_id="own", seq_id=number)

    def send(self) -> None:
        self._more.release()


@pytest.mark.parametrize(
    ("deletes", "code"), [(False, grpc.StatusCode.FAILED_PRECONDITION), (True, grpc.StatusCode.NOT_FOUND)]
)
def test_publishing_fails_after_the_end_of_its_run(lane: Lane, deletes: bool, code: grpc.StatusCode) -> None:
    """The daemon refuses a step that arrives after the run's end, although the client has not ended the call."""
    run_id = lane.run("wait_for('end')")
    lane.wait_for_proxy(run_id)
    wait_until(lambda: lane.describe(run_id).worker_pid, "the worker")
    publisher = _Publisher(lane, run_id)
    publisher.send()
    lane.wait_for_steps(run_id, 1)
    lane.open("end")
    lane.wait_for(run_id, TERM)
    if deletes:
        lane.slow_lane.DeleteRun(slow_lane.DeleteRunRequest(run_id=run_id), timeout=DEADLINE_SECS)
    publisher.send()
    assert publisher.call.exception(timeout=DEADLINE_SECS).code() is code
    if not deletes:
        assert lane.table("SELECT count(*) FROM steps WHERE run_id = ?", run_id) == [(1,)]


def _big(kind: Any, field: str, run_id: str, bytes_: int) -> Any:
    """Returns an event of the given encoded size, with JSON as its text."""
    event = kind(run_id=run_id, worker_id="own", seq_id=1)
    rest = bytes_ - event.ByteSize() - 5  # the size of the field's tag and length
    setattr(event, field, json.dumps("x" * (rest - 2)))
    assert event.ByteSize() == bytes_
    return event


def test_accepted_events_can_be_read(lane: Lane) -> None:
    """A client with a limit of 64 MiB receives each accepted event; the daemon refuses larger events."""
    run_id = lane.run("wait_for('end')")
    wait_until(lambda: lane.describe(run_id).worker_pid, "the worker")
    lane.trainer.RegisterWorker(trainer.RegisterWorkerRequest(run_id=run_id, worker_id="own"))
    options = [("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.use_local_subchannel_pool", 1)]
    accepted = {}
    with grpc.insecure_channel(lane.address, options=options) as channel:
        stub = trainer_grpc.TrainerServiceStub(channel)
        for kind, field, publish in (
            (trainer.RunStep, "observation_json", stub.PublishRunSteps),
            (trainer.RunEpisode, "metadata_json", stub.PublishRunEpisodes),
        ):
            for slack in (0, 8 << 20):  # until an event is accepted
                event = _big(kind, field, run_id, MAX_MESSAGE_BYTES - slack)
                try:
                    assert publish(iter([event]), timeout=DEADLINE_SECS).accepted == 1
                except grpc.RpcError as refused:
                    assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
                    assert str(event.ByteSize()) in refused.details()
                else:
                    accepted[kind] = getattr(event, field)
                    break
        lane.open("end")
        lane.wait_for(run_id, TERM)
        (step,) = stub.StreamRunSteps(trainer.StreamStepsRequest(run_id=run_id), timeout=DEADLINE_SECS)
        assert step.observation_json == accepted[trainer.RunStep]
        (episode,) = stub.StreamRunEpisodes(trainer.StreamEpisodesRequest(run_id=run_id), timeout=DEADLINE_SECS)
        assert episode.metadata_json == accepted[trainer.RunEpisode]
        blocks = slow_lane_grpc.SlowLaneStub(channel).StreamEvents(
            slow_lane.StreamEventsRequest(run_id=run_id), timeout=DEADLINE_SECS
        )
        assert sum(len(block.steps) + len(block.episodes) for block in blocks) == 2


def test_socket_of_a_running_daemon_is_refused(lane: Lane) -> None:
    """A daemon replaces only a socket without a listener."""
    with running_lane(f"--socket={lane.scratch}/more.sock") as other:
        code, complaint = lane.start_expecting_exit(f"--data_dir={lane.scratch}/third", *other.flags, "--listen=none")
        assert code == 1
        assert "--socket" in complaint and "more.sock" in complaint
        with grpc.insecure_channel(f"unix:{lane.scratch}/more.sock") as channel:
            stub = trainer_grpc.TrainerServiceStub(channel)
            assert stub.GetHealth(trainer.HealthCheckRequest(), timeout=DEADLINE_SECS).pid == other.pid
        other.restart()
        with grpc.insecure_channel(f"unix:{lane.scratch}/more.sock") as channel:
            stub = trainer_grpc.TrainerServiceStub(channel)
            assert stub.GetHealth(trainer.HealthCheckRequest(), timeout=DEADLINE_SECS).pid == other.pid


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1", ":0", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:http", "::1:50055"]
)
def test_daemon_refuses_an_invalid_address(lane: Lane, address: str) -> None:
    """With gRPC alone, a port would count modulo 65536, and an address without a port would have port 443."""
    code, complaint = lane.start_expecting_exit(f"--data_dir={lane.scratch}/other", f"--listen={address}")
    assert code == 2 and "--listen" in complaint and f"'{address}'" in complaint, complaint


def test_daemon_reports_a_missing_folder_of_a_socket(lane: Lane) -> None:
    """The error is not "Address already in use"."""
    code, complaint = lane.start_expecting_exit(
        f"--data_dir={lane.scratch}/other", "--listen=none", "--socket=/no/such/x.sock"
    )
    assert code == 1 and "No such file" in complaint and "/no/such" in complaint, complaint
    long = f"--socket={lane.scratch}/{'x' * 120}"
    code, complaint = lane.start_expecting_exit(f"--data_dir={lane.scratch}/other", "--listen=none", long)
    assert code == 1 and "at most 107 bytes" in complaint, complaint


def test_daemon_that_cannot_listen_leaves_runs_to_the_next(lane: Lane) -> None:
    """The failing daemon took over the running runs, and ended one whose configuration is invalid."""
    goes_on, unreadable = (lane.run("steps(1, 1); wait_for('end')") for _ in range(2))
    lane.wait_for(goes_on, EXEC)
    lane.wait_for(unreadable, EXEC)
    lane.kill()
    with contextlib.closing(sqlite3.connect(lane.data_dir / "tandem.db", isolation_level=None)) as table:
        table.execute("UPDATE runs SET config_json = '{}' WHERE run_id = ?", (unreadable,))
    host, port = lane.address.split(":")
    with socket.create_server((host, int(port))):
        for _ in range(5):
            code, complaint = lane.start_expecting_exit()
            assert code == 1 and "--listen" in complaint and "Address already in use" in complaint
            # The text is the daemon's own, not gRPC's.
            assert all(line.startswith("tandem-daemon: ") for line in complaint.splitlines()), complaint
    lane.start()
    assert "not valid any more" in lane.wait_for(unreadable, FAULT).failure_reason
    lane.open("end")
    lane.wait_for(goes_on, TERM)


def test_unreadable_table_is_reported(lane: Lane) -> None:
    """The daemon does not treat it as an empty table; each command of tandemctl reports the error."""
    run_id = lane.run("steps(1, 1)")
    lane.wait_for(run_id, TERM)
    with contextlib.closing(sqlite3.connect(lane.data_dir / "tandem.db", timeout=DEADLINE_SECS)) as table:
        table.execute("ALTER TABLE positions RENAME TO moved")
    for words in (["list"], ["logs", run_id], ["watch", run_id], ["export", run_id], ["health"]):
        done = subprocess.run(
            [*CTL, *words, "--daemon", lane.address], capture_output=True, text=True, timeout=DEADLINE_SECS, check=False
        )
        assert done.returncode == 1, (words, done)
        assert "positions" in done.stderr, (words, done)
