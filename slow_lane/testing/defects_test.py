"""Eleven known defects of MOSAIC's daemon: each test shows that Tandem's daemon does not have one of them."""

import contextlib
import json
import os
import random
import signal
import threading
import time
from typing import Any

import grpc
import pytest

from schema.protos import trainer_pb2 as trainer
from slow_lane.testing.daemon_fixture import (  # noqa: F401, two are fixtures
    EXEC,
    FAULT,
    PAUSE,
    TERM,
    Lane,
    lane_fixture,
    running_lane,
    watchdog,
)
from tandem.testing.daemons import DEADLINE_SECS, await_stopped, process_state, wait_until


def test_01_cancel_ends_the_process(lane: Lane) -> None:
    """MOSAIC: CancelRun does not kill the worker. Here it ends all processes, also if they ignore SIGTERM."""
    run_id = lane.run("signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); steps(1, 1); time.sleep(600)")
    lane.wait_for(run_id, EXEC)
    assert len(lane.workers()) == 2
    lane.cancel(run_id)
    assert lane.workers() == []
    assert lane.record(run_id).status == TERM and "cancelled" in lane.record(run_id).failure_reason


def test_02_worker_without_heartbeats_continues() -> None:
    """MOSAIC: the worker is killed after 300 s. Here the proxy sends heartbeats; only a dead worker fails the run."""
    with running_lane("--heartbeat=200ms", "--timeout=3s", "--kill_grace=500ms") as lane:
        run_id = lane.run("steps(1, 1); time.sleep(600)")
        lane.wait_for(run_id, EXEC)
        (worker,) = lane.workers()
        four_timeouts = time.monotonic() + 12
        while time.monotonic() < four_timeouts:
            run = lane.describe(run_id)
            assert run.record.status == EXEC and not run.unreachable

        proxy = lane.wait_for_proxy(run_id)
        os.kill(proxy, signal.SIGSTOP)
        wait_until(lambda: lane.describe(run_id).unreachable, "the run to be unreachable")
        two_timeouts = time.monotonic() + 6
        while time.monotonic() < two_timeouts:
            run = lane.describe(run_id)
            assert run.record.status == EXEC and run.unreachable
        os.kill(proxy, signal.SIGCONT)
        wait_until(lambda: not lane.describe(run_id).unreachable, "the run to be reachable again")
        assert lane.workers() == [worker] and lane.record(run_id).status == EXEC

        os.kill(worker, signal.SIGKILL)
        assert "signal 9" in lane.wait_for(run_id, FAULT).failure_reason


def test_03_numbers_are_the_same_live_replayed_and_after_a_restart(lane: Lane) -> None:
    """MOSAIC: since_seq is ignored, and numbers differ between table and stream and restart with each daemon."""
    run_id = lane.run("steps(1, 1000); wait_for('more'); steps(1001, 1500); wait_for('end')")
    live = [(step.seq_id, step.step_index) for step in lane.first_steps(run_id, 1000)]
    assert live == [(number, number) for number in range(1, 1001)]
    before = lane.record(run_id).seq_id
    lane.restart()
    assert [(step.seq_id, step.step_index) for step in lane.first_steps(run_id, 1000)] == live
    lane.open("more")
    late = [(step.seq_id, step.step_index) for step in lane.first_steps(run_id, 800, since=700)]
    assert late == [(number, number) for number in range(701, 1501)]
    rows = lane.table("SELECT seq_id, step_index FROM steps WHERE run_id = ? ORDER BY seq_id", run_id)
    assert rows == live[:700] + late
    lane.open("end")
    after = lane.wait_for(run_id, TERM).seq_id
    assert after > before
    lane.restart()
    call = lane.trainer.WatchRuns(trainer.WatchRunsRequest(since_seq=before), timeout=DEADLINE_SECS)
    changes = []
    for record in call:
        changes.append(record.seq_id)
        if record.seq_id == after:
            call.cancel()
            break
    assert changes[0] > before and changes == sorted(set(changes))
    assert [step.seq_id for step in lane.steps(run_id, since=1499)] == [1500]


def test_04_nothing_is_dropped_and_the_tail_is_kept(lane: Lane) -> None:
    """MOSAIC: the oldest lines are dropped under load, and the newest at the worker's exit."""
    run_id = lane.run("put(lines(1, 100_000))")
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == list(range(1, 100_001))


def test_05_long_lines_are_read(lane: Lane) -> None:
    """MOSAIC: a line above 64 KiB ends the reader. Here the limit is 16 MiB, and a longer line is malformed."""
    sizes = [(64 << 10) + 1, 1 << 20, 16 << 20, (16 << 20) + 1]
    run_id = lane.run(
        """
for index, size in enumerate(json.loads(sys.argv[2])):
    line = lines(index, index, observation="").rstrip()
    put(line[:-2] + b"x" * (size - len(line)) + b'"}' + b"\\n")
steps(100, 100)
""",
        json.dumps(sizes),
    )
    lane.wait_for(run_id, TERM)
    rows = lane.table("SELECT step_index, length(observation_json) FROM steps WHERE run_id = ? ORDER BY seq_id", run_id)
    assert [index for index, _ in rows] == [0, 1, 2, 100]
    for (_, length), size in zip(rows, sizes[:3], strict=False):
        assert size - 100 < length < size
    ((size, reason),) = lane.table("SELECT bytes, reason FROM malformed WHERE run_id = ?", run_id)
    assert size == sizes[3] and str(16 << 20) in reason
    sent = lane.steps(run_id)
    assert [len(step.observation_json) for step in sent] == [length or 0 for _, length in rows]


def test_06_each_step_is_stored_once(lane: Lane) -> None:
    """MOSAIC: without a unique key each step is stored twice. Here once, also if the proxy is killed repeatedly."""
    run_id = lane.run("[(steps(n * 100 + 1, n * 100 + 100), time.sleep(0.01)) for n in range(200)]; wait_for('end')")
    chance = random.Random(6)
    for _ in range(8):
        with contextlib.suppress(ProcessLookupError):  # it was killed before
            os.kill(lane.wait_for_proxy(run_id), signal.SIGKILL)
        time.sleep(chance.uniform(0, 0.3))
    wait_until(lambda: lane.describe(run_id).steps == 20_000, "all steps to be in the table")
    lane.open("end")
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == list(range(1, 20_001))
    numbers = lane.table("SELECT source_number FROM steps WHERE run_id = ? ORDER BY seq_id", run_id)
    assert [number for (number,) in numbers] == list(range(1, 20_001))
    assert lane.describe(run_id).proxy_starts > 1


def test_07_calls_are_answered_while_episodes_wait_for_the_disk(lane: Lane) -> None:
    """MOSAIC: the flush of one episode blocks every call."""
    run_id = lane.run(
        'steps(1, 1); wait_for(\'go\'); put(b\'\'.join(b\'{"event_type": "episode", "episode": %d, "total_reward": 1, '
        '"steps": 1}\\n\' % n for n in range(5000)))'
    )
    lane.wait_for(run_id, EXEC)
    with lane.no_commits():
        lane.open("go")
        wait_until(lambda: lane.daemon_state().queued_bytes > 0, "episodes to wait for their commit")
        wait_until(lambda: not lane.healthy(), "the daemon to say that it cannot commit")
        assert lane.daemon_state().daemon_state != "ok"
        for _ in range(100):
            assert lane.record(run_id).status == EXEC
            assert lane.describe(run_id).episodes == 0
        assert [step.seq_id for step in lane.first_steps(run_id, 1)] == [1]
    lane.wait_for(run_id, TERM)
    assert lane.describe(run_id).episodes == 5000
    assert lane.healthy() and lane.daemon_state().daemon_state == "ok"


def test_08_queues_are_bounded_and_runs_are_controlled(lane: Lane) -> None:
    """MOSAIC: the store's queue has no bound, and ControlStream is not implemented."""
    runs = [
        lane.run("steps(0, 0); wait_for('go'); [steps(n, n, observation='x' * 65536) for n in range(1, 801)]")
        for _ in range(4)
    ]
    for run_id in runs:
        lane.wait_for(run_id, EXEC)
    before = lane.peak_rss_bytes()
    with lane.no_commits():
        lane.open("go")
        wait_until(lambda: lane.workers() == [], "the workers to have printed 200 MB")
        # A run has at most eight batches on the way; on a busy machine each has one event of 64 KiB.
        wait_until(lambda: lane.daemon_state().queued_bytes > 1 << 20, "the queue to fill")
    for run_id in runs:
        lane.wait_for(run_id, TERM)
        assert lane.step_indices(run_id) == list(range(801))
    assert lane.peak_rss_bytes() - before < 128 << 20

    run_id = lane.run("steps(1, 1); time.sleep(600)")
    lane.wait_for(run_id, EXEC)
    (worker,) = lane.workers()
    end = threading.Event()

    def controls() -> Any:
        yield trainer.ControlEvent(run_id=run_id, pause=True)
        wait_until(lambda: lane.record(run_id).status == PAUSE, "the run to pause")
        await_stopped(worker)
        yield trainer.ControlEvent(run_id=run_id, resume=True)
        end.wait(DEADLINE_SECS)

    call = lane.trainer.ControlStream(controls(), timeout=DEADLINE_SECS)
    wait_until(lambda: lane.table("SELECT count(*) FROM run_updates WHERE status = ?", PAUSE)[0][0], "a pause")
    lane.wait_for(run_id, EXEC)
    wait_until(lambda: process_state(worker) == "S", "the worker to go on")
    end.set()
    assert list(call) == []


def test_09_identical_configuration_runs_again(lane: Lane) -> None:
    """MOSAIC: the same configuration is refused forever, even after a failure."""
    ran = lane.scratch / "ran"
    config = lane.program(
        "open(sys.argv[2], 'a').write('x'); sys.exit(int(os.path.exists(sys.argv[2] + '.fail')))", str(ran)
    )
    (lane.scratch / "ran.fail").touch()
    digests = set()
    for count, status in enumerate([FAULT, FAULT, TERM, TERM], 1):
        if count == 3:
            (lane.scratch / "ran.fail").unlink()
        record = lane.wait_for(lane.submit(config), status)
        digests.add(record.digest)
        assert ran.read_text("utf-8") == "x" * count
    assert len(digests) == 1


@pytest.mark.parametrize("kills_proxy", [False, True])
def test_10_each_run_is_dispatched_once_across_restarts(lane: Lane, kills_proxy: bool) -> None:
    """MOSAIC: a crash of the daemon may dispatch a run twice, and loses executing runs."""
    chance = random.Random(10)
    starts = lane.scratch / "starts"
    starts.mkdir()
    source = """
with open(os.path.join(sys.argv[2], os.environ["TANDEM_RUN_ID"]), "a") as file:
    file.write(f"{os.getpid()}\\n")
steps(1, 10)
wait_for("end")
steps(11, 20)
"""
    config = lane.program(source, str(starts))
    runs = []
    for index in range(25):
        run_id = f"run-{index}"
        runs.append(run_id)
        request = trainer.SubmitRunRequest(run_id=run_id, config_json=json.dumps(config))
        submitted = lane.trainer.SubmitRun.future(request, timeout=DEADLINE_SECS)
        time.sleep(chance.uniform(0, 0.12))
        if kills_proxy and (proxy := lane.proxy(run_id)) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(proxy, signal.SIGKILL)
        lane.restart()
        with contextlib.suppress(grpc.RpcError, grpc.FutureCancelledError):
            submitted.result()
        # The answer was lost, so the test submits again with the same run_id, as a client does.
        lane.submit(config, run_id)
    for run_id in runs:
        lane.wait_for_steps(run_id, 10)
        lane.wait_for(run_id, EXEC)
    lane.restart()
    lane.open("end")
    for run_id in runs:
        lane.wait_for(run_id, TERM)
        assert len((starts / run_id).read_text("utf-8").splitlines()) == 1
        assert lane.step_indices(run_id) == list(range(1, 21))


def test_11_history_of_a_run_is_complete(lane: Lane) -> None:
    """MOSAIC: the daemon reads the last rows of all runs, and filters by run afterwards."""
    source = "for n in range(10): wait_for(sys.argv[2] + str(n)); steps(n * 200 + 1, n * 200 + 200)"
    first, second = lane.run(source, "a"), lane.run(source, "b")
    for n in range(10):
        for name, run_id in (("a", first), ("b", second)):
            lane.open(f"{name}{n}")
            lane.wait_for_steps(run_id, n * 200 + 200)
    lane.wait_for(first, TERM)
    third = lane.run("steps(1, 30_000)")
    for run_id in (second, third):
        lane.wait_for(run_id, TERM)
    for run_id in (first, second):
        steps = lane.steps(run_id)
        assert [step.step_index for step in steps] == list(range(1, 2001))
        assert [step.seq_id for step in steps] == list(range(1, 2001))
