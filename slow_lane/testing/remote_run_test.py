"""A run whose worker is on another machine: its proxy reads the output there, and sends the events by the network."""

import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from schema.protos import slow_lane_pb2 as slow_lane
from schema.protos import slow_lane_pb2_grpc as slow_lane_grpc
from slow_lane.testing.printed_lines import check_table
from slow_lane.testing.remote_runs import Remote
from tandem.telemetry import RunStatus, WrongState
from tandem.testing.daemons import DEADLINE_SECS, is_alive, wait_until
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.ray.hosts import TwoHosts, can_make_hosts

_CUT_SECS = float(os.environ.get("TANDEM_CUT_SECS", "4"))
_PRINT_STEPS = str(Path(__file__).with_name("print_steps.py").absolute())


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    """Both machines are this one."""
    with contextlib.closing(Remote(tmp_path)) as made:
        yield made


def test_killed_proxies_lose_no_event(remote: Remote) -> None:
    """The job starts another one, which goes on where the table ends; the worker does not notice."""
    steps = 20000
    run_id = remote.submit(_PRINT_STEPS, str(steps), "4")
    node = remote.start_node(run_id)
    remote.worker(run_id)
    killed = 0
    while node.poll() is None and killed < 5:
        time.sleep(random.uniform(0.1, 0.6))
        for pid in remote.proxies(run_id):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    assert node.wait(DEADLINE_SECS) == 0
    run = remote.await_end(run_id)
    assert run.status == RunStatus.TERM, run
    printed = check_table(remote.daemon.data_dir, run_id, remote.folder_of(run_id) / "stdout.jsonl")
    assert len(printed.steps) == steps and killed > 0


_WRITES_FILES = """
import os, sys, time
from tandem.telemetry import EvalSummaryWriter
folder = os.environ["TANDEM_RUN_DIR"]
summary = EvalSummaryWriter()
for batch in range(3):
    summary.add_batch([float(batch)])
    print(batch, file=sys.stderr, flush=True)
    time.sleep(0.7)
path = os.path.join(folder, "film.mp4")
with open(path, "wb") as film:
    film.write(bytes(range(256)) * 5_000)
time.sleep(2)  # sent meanwhile
with open(path, "r+b") as film:  # ffmpeg completes the head last
    film.write(b"head")
    film.seek(0, os.SEEK_END)
    film.write(b"tail" * 5_000)
with open(os.path.join(folder, "notes.txt"), "w") as notes:
    notes.write("stays here")
"""


def test_summaries_logs_and_films_come_to_the_daemon(remote: Remote) -> None:
    """While the run goes on, and whole when it has ended; a proxy that is killed meanwhile changes nothing."""
    run_id = remote.submit("-c", _WRITES_FILES)
    node = remote.start_node(run_id)
    here, there = remote.daemon.data_dir / "runs" / run_id, remote.folder_of(run_id)
    wait_until((here / "eval_summary.json").exists, "a summary")
    for pid in remote.proxies(run_id):
        os.kill(pid, signal.SIGKILL)
    assert node.wait(DEADLINE_SECS) == 0
    assert remote.await_end(run_id).status == RunStatus.TERM
    for name in ("eval_summary.json", "stderr.log", "film.mp4"):
        assert (here / name).read_bytes() == (there / name).read_bytes(), name
    assert (here / "stderr.log").read_text("ascii") == "0\n1\n2\n"
    assert not (here / "notes.txt").exists() and not list(here.glob(".sender*"))


def test_only_parts_of_known_files_are_written(remote: Remote) -> None:
    """By the run's token, below no other folder, without a gap, and not into the sender's own folder."""
    run_id = remote.submit("-c", "import time; time.sleep(600)")
    here = remote.daemon.data_dir / "runs" / run_id
    token = json.loads((here / "launch.json").read_text("utf-8"))["token"]
    plan = (here / "launch.json").read_bytes()
    with grpc.insecure_channel(f"unix:{remote.daemon.data_dir}/daemon.sock") as channel:
        relay = slow_lane_grpc.SlowLaneStub(channel).RelayFile

        def send(name: str, *, offset: int = 0, data: bytes = b"part", **fields: str) -> Any:
            values = {"run_id": run_id, "token": token, "marker": "other", **fields}
            return relay(slow_lane.RelayFileRequest(name=name, offset=offset, data=data, **values))

        assert send("film.mp4").wanted and send("film.mp4", offset=4).wanted
        assert (here / "film.mp4").read_bytes() == b"partpart"
        assert not send("film.mp4", marker="config.json").wanted
        for fields, code in (
            ({"name": "launch.json"}, "INVALID_ARGUMENT"),
            ({"name": "../film.mp4"}, "INVALID_ARGUMENT"),
            ({"name": "stdout.jsonl"}, "INVALID_ARGUMENT"),
            ({"name": "film.mp4", "data": bytes(1 << 20) + b"1"}, "INVALID_ARGUMENT"),
            ({"name": "film.mp4", "offset": 1 << 63}, "INVALID_ARGUMENT"),
            ({"name": "film.mp4", "offset": 9}, "OUT_OF_RANGE"),
            ({"name": "film.mp4", "token": "another"}, "UNAUTHENTICATED"),
            ({"name": "film.mp4", "run_id": "another"}, "NOT_FOUND"),
        ):
            with pytest.raises(grpc.RpcError) as refused:
                send(**fields)
            assert refused.value.code().name == code, fields
    assert (here / "film.mp4").read_bytes() == b"partpart" and (here / "launch.json").read_bytes() == plan


def test_the_worker_has_the_configuration_and_the_nodes_environment(remote: Remote) -> None:
    """Its variables, its default folder and its exit status are those of the other machine."""
    names = "os.environ['TANDEM_DAEMON'], os.environ['TANDEM_RUN_ID']"
    run_id = remote.submit("-c", f"import os, sys; print(os.getcwd(), {names}); sys.exit(3)")
    assert remote.start_node(run_id).wait(DEADLINE_SECS) == 0
    run = remote.await_end(run_id)
    assert run.status == RunStatus.FAULT and "exited with code 3" in (run.failure_reason or ""), run
    folder = remote.folder_of(run_id)
    printed = (folder / "stdout.jsonl").read_text("utf-8")
    assert printed == f"{folder} {remote.daemon.address} {run_id}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_worker_ends_with_the_job(remote: Remote, number: signal.Signals) -> None:
    """Ray stops the job by SIGTERM; SIGKILL is the death of Ray's process. The daemon learns both."""
    run_id = remote.submit(_PRINT_STEPS, "1000000", "1000")
    node = remote.start_node(run_id)
    worker = remote.worker(run_id)
    node.send_signal(number)
    run = remote.await_end(run_id)
    assert run.status == RunStatus.FAULT and "signal 15" in (run.failure_reason or ""), run
    wait_until(lambda: not is_alive(worker) and not remote.proxies(run_id), "no process of the run")
    check_table(remote.daemon.data_dir, run_id, remote.folder_of(run_id) / "stdout.jsonl")


def test_a_job_that_comes_after_the_runs_end_starts_nothing(remote: Remote) -> None:
    """Such as one that waited for resources when the run was deleted, or a second one."""
    run_id = remote.submit("-c", "print(1)")
    assert remote.start_node(run_id).wait(DEADLINE_SECS) == 0
    remote.await_end(run_id)
    output = remote.folder_of(run_id) / "stdout.jsonl"
    before = output.stat().st_mtime_ns
    assert remote.start_node(run_id).wait(DEADLINE_SECS) == 0
    assert output.stat().st_mtime_ns == before


def test_its_processes_cannot_be_paused(remote: Remote) -> None:
    """The daemon has no process to stop."""
    run_id = remote.submit("-c", "print(1)")
    with pytest.raises(WrongState, match="a job of Ray"):
        remote.client.pause(run_id)
    assert remote.start_node(run_id).wait(DEADLINE_SECS) == 0


def test_without_python_the_run_is_a_fault(tmp_path: Path) -> None:
    """The daemon tries some times, and says where the reason is."""
    with contextlib.closing(Remote(tmp_path, python="/no/python")) as remote:
        run_id = remote.submit("-c", "print(1)")
        run = remote.await_end(run_id)
        assert run.status == RunStatus.FAULT and "job of Ray" in (run.failure_reason or ""), run
        assert "/no/python" in (remote.daemon.data_dir / "runs" / run_id / "proxy.log").read_text("utf-8")


@pytest.mark.skipif(not can_make_hosts(), reason="network namespaces need root and the program ip")
def test_a_cut_cable_loses_no_event(tmp_path: Path) -> None:
    """The worker prints on meanwhile; then the table equals its output, each event once."""
    steps, before_secs, after_secs = int(2000 * (_CUT_SECS + 6)), 3, 3
    hosts = TwoHosts()
    with hosts.up(), contextlib.closing(Remote(tmp_path, hosts)) as remote:
        run_id = remote.submit(_PRINT_STEPS, str(steps), str(before_secs + _CUT_SECS + after_secs))
        node = remote.start_node(run_id)
        remote.worker(run_id)
        time.sleep(before_secs)
        hosts.set_cable(False)
        (at_cut,) = remote.client.describe(run_id).runs
        time.sleep(_CUT_SECS)
        (at_end,) = remote.client.describe(run_id).runs
        output = remote.folder_of(run_id) / "stdout.jsonl"
        waiting = output.stat().st_size - at_end.bytes_read
        hosts.set_cable(True)
        restored = time.monotonic()
        assert at_cut.steps > 0 and at_end.steps < steps and waiting > 0
        run = remote.await_end(run_id, 120)
        print(
            f"cut for {_CUT_SECS:g} s: {at_end.steps - at_cut.steps} steps came, {waiting} bytes waited; the run ended "
            f"{time.monotonic() - restored:.1f} s after the cable was back"
        )
        assert run.status == RunStatus.TERM, run
        assert node.wait(DEADLINE_SECS) == 0
        printed = check_table(remote.daemon.data_dir, run_id, output)
        assert len(printed.steps) == steps
