"""Full disks, invalid data, disconnected clients: the daemon reports the cause, stays bounded, and loses no event.

Length: one short test for each kind of hostile input, all with the same helper functions.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from schema.protos import slow_lane_pb2 as slow_lane
from schema.protos import trainer_pb2 as trainer
from slow_lane.testing.daemon_fixture import (  # noqa: F401, two are fixtures
    EXEC,
    FAULT,
    TERM,
    Lane,
    lane_fixture,
    running_lane,
    watchdog,
)
from tandem.testing.daemons import DEADLINE_SECS, run_config, wait_until

# A `put` that retries after a failed write, so that a full disk loses no line. A line may be written in
# several parts.
_STUBBORN = """
def put(data):
    data = memoryview(data)
    while data:
        try: data = data[os.write(1, data):]
        except OSError: time.sleep(0.01)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mounts a file system of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tandem-test", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@contextlib.contextmanager
def _lane_on(folder: Path, scratch: Path) -> Iterator[Lane]:
    lane = Lane(scratch, "--heartbeat=200ms", "--timeout=1s", "--kill_grace=500ms")
    lane.data_dir = folder / "data"
    try:
        yield lane.start()
    finally:
        lane.clear()


def _fill(folder: Path) -> Path:
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return filler


def test_full_disk_loses_no_event(small_disk: Path, tmp_path: Path) -> None:
    """The daemon reports the full disk, answers calls, recovers without a restart, and stores each printed event."""
    with _lane_on(small_disk, tmp_path) as lane:
        run_id = lane.run(
            _STUBBORN + "n = 1\nwhile not os.path.exists(os.path.join(GATES, 'end')):\n"
            "    steps(n, n + 9); n += 10; time.sleep(0.001)\nopen(sys.argv[2], 'w').write(str(n - 1))",
            str(lane.scratch / "printed"),
        )
        lane.wait_for(run_id, EXEC)
        filler = _fill(small_disk)
        wait_until(lambda: not lane.healthy(), "the daemon to notice")
        state = lane.daemon_state().daemon_state
        assert "full" in state, state
        durable = lane.describe(run_id).steps
        assert len(lane.first_steps(run_id, durable)) == durable
        assert lane.record(run_id).status == EXEC
        filler.unlink()
        wait_until(lane.healthy, "the daemon to recover")
        assert lane.daemon_state().daemon_state == "ok"
        lane.open("end")
        lane.wait_for(run_id, TERM)
        printed = int((lane.scratch / "printed").read_text("utf-8"))
        assert printed > durable
        assert lane.step_indices(run_id) == list(range(1, printed + 1))


def test_cancel_ends_a_run_although_the_disk_is_full(small_disk: Path, tmp_path: Path) -> None:
    """CancelRun answers when the processes are gone; the run's end is stored when the disk has room."""
    with _lane_on(small_disk, tmp_path) as lane:
        run_id = lane.run("steps(1, 1); time.sleep(600)")
        lane.wait_for(run_id, EXEC)
        filler = _fill(small_disk)
        lane.cancel(run_id)
        assert lane.workers() == []
        assert not lane.healthy() and lane.record(run_id).status == EXEC
        filler.unlink()
        assert lane.wait_for(run_id, TERM).failure_reason.startswith("cancelled")


def test_daemon_killed_on_a_full_disk_continues_later(small_disk: Path, tmp_path: Path) -> None:
    """A daemon that starts on a full disk serves, reports it, and loses no event."""
    with _lane_on(small_disk, tmp_path) as lane:
        run_id = lane.run(_STUBBORN + "steps(1, 100); wait_for('go'); steps(101, 5000); wait_for('end')")
        lane.wait_for(run_id, EXEC)
        filler = _fill(small_disk)
        lane.open("go")
        lane.kill()
        lane.start()
        wait_until(lambda: not lane.healthy(), "the daemon to notice")
        assert "full" in lane.daemon_state().daemon_state
        filler.unlink()
        lane.wait_for_steps(run_id, 5000)
        lane.open("end")
        lane.wait_for(run_id, TERM)
        assert lane.step_indices(run_id) == list(range(1, 5001))


def test_daemon_refuses_a_newer_table(lane: Lane) -> None:
    """The daemon does not change the file."""
    lane.stop()
    with contextlib.closing(sqlite3.connect(lane.data_dir / "tandem.db")) as base:
        base.execute("PRAGMA user_version = 999")
    before = (lane.data_dir / "tandem.db").read_bytes()
    code, words = lane.start_expecting_exit()
    assert code == 1 and "999" in words and words.startswith("tandem-daemon: "), words
    assert (lane.data_dir / "tandem.db").read_bytes() == before


def test_removed_wal_file_of_the_table_loses_no_event(lane: Lane) -> None:
    """Health reports the removed file; the next daemon has all rows and the events printed since."""
    run_id = lane.run("steps(1, 100); wait_for('go'); steps(101, 200); wait_for('end')")
    lane.wait_for_steps(run_id, 100)
    (lane.data_dir / "tandem.db-wal").unlink()
    lane.open("go")
    wait_until(lambda: "tandem.db-wal" in lane.daemon_state().daemon_state, "the daemon to notice")
    assert lane.stop() == 0
    lane.start()
    lane.open("end")
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == list(range(1, 201))


def test_second_daemon_of_a_folder_exits(lane: Lane) -> None:
    """The error names the first daemon's pid or the folder; the first daemon continues."""
    code, words = lane.start_expecting_exit("--listen=127.0.0.1:0")
    assert code == 1 and f"pid {lane.pid}" in words and "--data_dir" in words, words
    (lane.data_dir / "daemon.pid").unlink()
    code, words = lane.start_expecting_exit("--listen=127.0.0.1:0")
    assert code == 1 and "--data_dir" in words, words
    lane.wait_for(lane.run("steps(1, 1)"), TERM)


def test_second_daemon_of_an_address_exits(lane: Lane) -> None:
    """The error names the address; the first daemon continues to serve."""
    code, words = lane.start_expecting_exit(f"--data_dir={lane.scratch / 'other'}")
    assert code == 1 and lane.address in words, words
    lane.wait_for(lane.run("steps(1, 1)"), TERM)


def test_binary_output_does_not_fail_a_run(lane: Lane) -> None:
    """Random bytes, incomplete lines, an event written byte by byte, and a last line without newline."""
    run_id = lane.run(
        r"""
import random
random.seed(1)
put(bytes(range(256)) * 10 + b"\n")
put(bytes(random.randrange(256) for _ in range(100_000)) + b"\n")
put(b"\0" * 1000 + b"\n\n\r\n\xff\xfe{}\n")
steps(1, 1)
whole = lines(2, 2)
for index in range(len(whole)):
    put(whole[index:index + 1]); time.sleep(0.001)
put(b'{"event_type": "step", "episode": \n' + b"{" * 10_000 + b"\n" + b'{"event_type": "step", "episode": -1}\n')
put(b'{"event_type": "step", "episode": 0, "step_index": 3, "reward": 1, "observation": "\xff\xfe"}\n')
put(b'{"a": ' * 5000 + b"\n")
put(lines(4, 4).rstrip())
""",
    )
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == [1, 2, 4]
    run = lane.describe(run_id)
    assert run.malformed >= 5 and run.text_lines >= 4
    for offset, length, head in lane.table("SELECT byte_offset, bytes, head FROM malformed WHERE run_id = ?", run_id):
        assert offset >= 0 and length > 0 and head
    assert run.bytes_read == (Path(run.folder) / "stdout.jsonl").stat().st_size


def test_worker_may_close_its_stdout(lane: Lane) -> None:
    """The lines printed before the close are stored."""
    run_id = lane.run("steps(1, 10); os.close(1); os.close(2); wait_for('end')")
    lane.wait_for_steps(run_id, 10)
    lane.open("end")
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == list(range(1, 11))


def test_worker_that_cuts_its_stdout_is_reported(lane: Lane) -> None:
    """The earlier rows stay; the run reports the problem, also with the next daemon and at its end."""
    run_id = lane.run("steps(1, 100); wait_for('cut'); os.ftruncate(1, 0); steps(1, 1); wait_for('end')")
    lane.wait_for_steps(run_id, 100)
    lane.open("cut")
    wait_until(lambda: (Path(lane.describe(run_id).folder) / "stdout.jsonl").stat().st_size < 1000, "the cut")
    wait_until(lambda: "only grows" in lane.describe(run_id).output_problem, "the problem to be shown")
    lane.restart()
    wait_until(lambda: "only grows" in lane.describe(run_id).output_problem, "the next daemon to report it")
    cancelled = lane.run("steps(1, 9); wait_for('more'); os.ftruncate(1, 0); steps(1, 1); wait_for('never')")
    lane.wait_for_steps(cancelled, 9)
    lane.open("more")
    wait_until(lambda: "only grows" in lane.describe(cancelled).output_problem, "the problem to be shown")
    lane.cancel(cancelled)
    reason = lane.wait_for(cancelled, TERM).failure_reason
    assert reason.startswith("cancelled") and "only grows" in reason
    lane.open("end")
    assert "only grows" in lane.wait_for(run_id, FAULT).failure_reason
    assert lane.step_indices(run_id) == list(range(1, 101))


def test_unreadable_output_is_read_again(lane: Lane) -> None:
    """The run reports the problem meanwhile; in the end no step is missing."""
    run_id = lane.run("steps(1, 10); wait_for('go'); steps(11, 20); wait_for('end')")
    lane.wait_for_steps(run_id, 10)
    output = Path(lane.describe(run_id).folder) / "stdout.jsonl"
    aside = output.rename(output.with_suffix(".aside"))
    output.mkdir()
    os.kill(lane.wait_for_proxy(run_id), signal.SIGKILL)
    wait_until(lambda: "directory" in lane.describe(run_id).output_problem, "the problem to be shown")
    lane.open("go")
    output.rmdir()
    aside.rename(output)
    lane.wait_for_steps(run_id, 20)
    wait_until(lambda: lane.describe(run_id).output_problem == "", "the problem to be over")
    lane.open("end")
    assert not lane.wait_for(run_id, TERM).HasField("failure_reason")
    assert lane.step_indices(run_id) == list(range(1, 21))


def test_run_continues_without_its_folder(lane: Lane) -> None:
    """The proxy has the output file open, so no step is lost while it lives."""
    run_id = lane.run("steps(1, 10); wait_for('go'); steps(11, 20); wait_for('end')")
    lane.wait_for_steps(run_id, 10)
    shutil.rmtree(lane.describe(run_id).folder)
    lane.open("go")
    lane.wait_for_steps(run_id, 20)
    lane.open("end")
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == list(range(1, 21))


def test_wrong_configurations_are_refused(lane: Lane) -> None:
    """Each error names the field; no run and no folder is created."""
    config = run_config("true")
    for text, field in (("", ""), ("{", ""), (json.dumps(config | {"run_name": 1}), "run_name")):
        with pytest.raises(grpc.RpcError, match=field) as refused:
            lane.trainer.SubmitRun(trainer.SubmitRunRequest(config_json=text), timeout=DEADLINE_SECS)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    for run_id in ("..", "a/b", "a\0b", "x" * 129, " ", "ä"):
        with pytest.raises(grpc.RpcError) as refused:
            lane.submit(run_config("true"), run_id)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert lane.trainer.ListRuns(trainer.ListRunsRequest(), timeout=DEADLINE_SECS).runs == []
    assert not list((lane.data_dir / "runs").glob("*"))


def test_program_that_cannot_be_started_is_a_failed_run(lane: Lane) -> None:
    """The failure reason names the program, or the working folder if that does not exist."""
    for folder, kind in (("/no/such/folder", "missing"), (__file__, "a file")):
        config = run_config("true") | {"metadata": {"tandem": {"working_directory": folder}}}
        assert folder in lane.wait_for(lane.submit(config), FAULT).failure_reason, kind
    assert "/no/such/program" in lane.wait_for(lane.submit(run_config("/no/such/program")), FAULT).failure_reason


def test_oversized_and_malformed_messages_are_refused(lane: Lane) -> None:
    """Only the call fails; the connection and the daemon continue."""
    with grpc.insecure_channel(lane.address, options=[("grpc.max_send_message_length", -1)]) as channel:

        def raw(method: str) -> Any:
            return channel.unary_unary(f"/gymgui.trainer.TrainerService/{method}")

        with pytest.raises(grpc.RpcError) as refused:
            raw("SubmitRun")(b"\x12" + b"\x80\x80\x80\x20" + b"x" * (65 << 20), timeout=DEADLINE_SECS)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        # Before they are decompressed: 64 MiB would be above the limit.
        with pytest.raises(grpc.RpcError, match="gzip") as refused:
            raw("SubmitRun")(bytes(64 << 20), timeout=DEADLINE_SECS, compression=grpc.Compression.Gzip)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        for junk in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x05ab", b"\x0a\x02\xff\xfe"):
            for method in ("SubmitRun", "CancelRun", "Heartbeat", "RegisterWorker"):
                with pytest.raises(grpc.RpcError) as refused:
                    raw(method)(junk, timeout=DEADLINE_SECS)
                assert refused.value.code() is not grpc.StatusCode.UNAVAILABLE
        with pytest.raises(grpc.RpcError) as refused:
            raw("NoSuchCall")(b"", timeout=DEADLINE_SECS)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        # gRPC's C++ library treats such a message as the end of the stream, so the call is answered.
        published = channel.stream_unary("/gymgui.trainer.TrainerService/PublishRunSteps")
        assert published(iter([b"\xff" * 100]), timeout=DEADLINE_SECS) == b""
        for method in ("gymgui.trainer.TrainerService/ControlStream", "tandem.slow_lane.v1.SlowLane/Link"):
            assert list(channel.stream_stream(f"/{method}")(iter([b"\xff" * 100]), timeout=DEADLINE_SECS)) == []
    host, port = lane.address.split(":")
    for junk in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(100_000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000,
    ):
        with (
            socket.create_connection((host, int(port)), timeout=DEADLINE_SECS) as connection,
            contextlib.suppress(OSError),
        ):
            connection.sendall(junk)
    lane.wait_for(lane.run("steps(1, 1)"), TERM)


def test_hello_without_the_run_token_is_refused(lane: Lane) -> None:
    """Without the run token, or without a hello, the daemon refuses the events; the run continues."""
    run_id = lane.run("steps(1, 1); wait_for('end')")
    lane.wait_for(run_id, EXEC)
    batch = slow_lane.EventBatch(run_id=run_id, steps=[trainer.RunStep(step_index=99, seq_id=2)])
    hello = slow_lane.Hello(run_id=run_id, token="guessed")
    for messages in (
        [slow_lane.FromProxy(hello=hello), slow_lane.FromProxy(batch=batch)],
        [slow_lane.FromProxy(batch=batch)],
        [slow_lane.FromProxy(worker_ended=slow_lane.WorkerEnded(exit_code=0))],
        [slow_lane.FromProxy(beat=True)],
        [slow_lane.FromProxy()],
        [slow_lane.FromProxy(hello=slow_lane.Hello(run_id="none"))],
    ):
        answers = list(lane.slow_lane.Link(iter(messages), timeout=DEADLINE_SECS))
        assert [answer.WhichOneof("message") for answer in answers] == ["refused"]
    assert lane.record(run_id).status == EXEC
    lane.open("end")
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == [1]


# Opens every streaming call, prints "ready", and waits until it is killed.
_CLIENT = """
import sys, threading, time
import grpc
sys.path[:0] = sys.argv[3:]
from schema.protos import slow_lane_pb2, slow_lane_pb2_grpc, trainer_pb2, trainer_pb2_grpc
address, run_id = sys.argv[1:3]
channel = grpc.insecure_channel(address)
trainer, slow_lane = trainer_pb2_grpc.TrainerServiceStub(channel), slow_lane_pb2_grpc.SlowLaneStub(channel)
trainer.RegisterWorker(trainer_pb2.RegisterWorkerRequest(run_id=run_id, worker_id="own"))
sent = threading.Event()
def messages(kind, count):
    for number in range(1, count + 1):
        yield kind(run_id=run_id, worker_id="own", seq_id=number)
    sent.set()
    time.sleep(600)
def events():
    yield trainer_pb2.ControlEvent(run_id=run_id, grant_steps=5)
    time.sleep(600)
calls = [
    trainer.WatchRuns(trainer_pb2.WatchRunsRequest()),
    trainer.StreamRunSteps(trainer_pb2.StreamStepsRequest(run_id=run_id)),
    trainer.StreamRunEpisodes(trainer_pb2.StreamEpisodesRequest(run_id=run_id)),
    slow_lane.StreamEvents(slow_lane_pb2.StreamEventsRequest(run_id=run_id, follow=True)),
    trainer.ControlStream(events()),
    trainer.PublishRunSteps.future(messages(trainer_pb2.RunStep, 1000)),
    trainer.PublishRunEpisodes.future(messages(trainer_pb2.RunEpisode, 1000)),
]
next(calls[0]); next(calls[1])
sent.wait()
print("ready", flush=True)
time.sleep(600)
"""


def test_vanished_clients_leave_nothing_behind(lane: Lane) -> None:
    """Clients are killed during each streaming call; the events they had sent are stored."""
    run_id = lane.run("steps(1, 100_000); wait_for('end')")
    lane.wait_for(run_id, EXEC)
    for _ in range(3):
        command = [sys.executable, "-c", _CLIENT, lane.address, run_id, *sys.path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            try:
                assert client.stdout is not None
                assert client.stdout.readline() == "ready\n"
                wait_until(lambda: lane.daemon_state().watchers >= 3, "the client's watches")
            finally:
                client.kill()
        wait_until(lambda: lane.daemon_state().watchers == 0, "the watches to end")
    lane.open("end")
    lane.wait_for(run_id, TERM)
    ((own,),) = lane.table("SELECT count(*) FROM steps WHERE run_id = ? AND worker_id = 'own'", run_id)
    assert 0 < own <= 1000
    assert len(lane.steps(run_id)) == 100_000 + own


def test_watcher_that_reads_nothing_slows_no_other(lane: Lane) -> None:
    """Its steps stay in the table: the daemon's memory is bounded, and it receives all steps later."""
    run_id = lane.run("wait_for('go'); [steps(n, n, observation='x' * 65536) for n in range(1, 1601)]")
    slow = [
        lane.trainer.StreamRunSteps(trainer.StreamStepsRequest(run_id=run_id), timeout=DEADLINE_SECS) for _ in range(10)
    ]
    wait_until(lambda: lane.daemon_state().watchers == 10, "ten watchers")
    before = lane.peak_rss_bytes()
    lane.open("go")
    lane.wait_for(run_id, TERM)
    assert len(lane.steps(run_id)) == 1600
    assert lane.peak_rss_bytes() - before < 200 << 20
    for call in slow:
        assert [step.seq_id for step in call] == list(range(1, 1601))


@pytest.mark.parametrize(
    "run_id", ["../runs", "..", ".", "/", "a/b", "a\0b", "a\nb", "x" * 100_000, "\uff0e\uff0e", ""]
)
def test_no_call_reaches_a_folder_by_a_run_id(lane: Lane, run_id: str) -> None:
    """The run_id names no run but could name a path; the daemon reads, creates and removes nothing there."""

    def files() -> dict[Path, int]:
        mine = ("tandem.db", "daemon.")
        return {
            path: path.lstat().st_mtime_ns
            for path in lane.data_dir.parent.rglob("*")
            if not path.name.startswith(mine) and path != lane.scratch / "daemon.log" and path != lane.data_dir
        }

    (lane.data_dir / "runs").mkdir(exist_ok=True)
    (lane.data_dir / "stdout.jsonl").write_bytes(b"secret\n")
    before = files()
    hello = slow_lane.FromProxy(hello=slow_lane.Hello(run_id=run_id))
    for call in (
        lambda: lane.cancel(run_id),
        lambda: lane.slow_lane.DeleteRun(slow_lane.DeleteRunRequest(run_id=run_id)),
        lambda: lane.trainer.RegisterWorker(trainer.RegisterWorkerRequest(run_id=run_id, worker_id="../w")),
        lambda: lane.trainer.Heartbeat(trainer.HeartbeatRequest(run_id=run_id)),
        lambda: lane.trainer.PublishRunSteps(iter([trainer.RunStep(run_id=run_id, seq_id=1)])),
        lambda: list(lane.trainer.ControlStream(iter([trainer.ControlEvent(run_id=run_id, pause=True)]))),
        lambda: lane.describe(run_id),
        lambda: lane.steps(run_id),
        lambda: list(lane.slow_lane.StreamEvents(slow_lane.StreamEventsRequest(run_id=run_id, follow=True))),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            call()
        assert refused.value.code() in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
    (answer,) = lane.slow_lane.Link(iter([hello]), timeout=DEADLINE_SECS)
    assert answer.WhichOneof("message") == "refused"
    assert files() == before


def test_jumping_clock_changes_nothing() -> None:
    """The wall clock jumps by years, in both directions: no run is unreachable, no event is lost."""
    with running_lane("--heartbeat=200ms", "--timeout=20s", "--kill_grace=500ms", starts=False) as lane:
        clock = lane.scratch / "clock"
        clock.write_bytes(bytes(8))
        lane.environment = {
            "LD_PRELOAD": str(Path("slow_lane/testing/shifted_clock.so").absolute()),
            "TANDEM_TEST_CLOCK": str(clock),
        }
        lane.start()
        source = """
n = 0
while not os.path.exists(os.path.join(GATES, "end")):
    n += 1; put(lines(n, n).replace(b'"reward"', b'"timestamp": %d, "reward"' % time.time_ns())); time.sleep(0.005)
open(sys.argv[2], "w").write(str(n))
"""
        first = lane.run(source, str(lane.scratch / "printed"))
        year = 365 * 86400
        for jump in (year, -2 * year):
            with open(clock, "r+b") as file:
                file.write(jump.to_bytes(8, "little", signed=True))
            until = time.monotonic() + 2
            while time.monotonic() < until:
                run = lane.describe(first)
                assert not run.unreachable and run.record.status not in (TERM, FAULT)
            steps = lane.describe(first).steps
            wait_until(lambda steps=steps: lane.describe(first).steps > steps, "more steps")  # type: ignore[misc]
            beat = lane.record(first).last_heartbeat.seconds
            assert abs(beat - time.time() - jump) < year / 24
            other = lane.run("steps(1, 1); time.sleep(600)")
            lane.wait_for(other, EXEC)
            lane.cancel(other)
            assert lane.record(other).status == TERM and len(lane.workers()) == 1
        lane.restart()
        lane.open("end")
        lane.wait_for(first, TERM)
        assert lane.step_indices(first) == list(range(1, int((lane.scratch / "printed").read_text("utf-8")) + 1))
