"""After CancelRun's answer no process of the run is alive, for any behaviour of the processes."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import grpc
import pytest

from schema.protos import trainer_pb2 as trainer
from slow_lane.testing.daemon_fixture import (  # noqa: F401, two are fixtures
    EXEC,
    INIT,
    TERM,
    Lane,
    lane_fixture,
    running_lane,
    watchdog,
)
from tandem.testing.daemons import DEADLINE_SECS, await_stopped, is_alive, run_config, wait_until

_HOSTILE = Path("slow_lane/runs/hostile_worker")

# The kinds of processes of `hostile_worker tree`: children, grandchildren, own sessions, double forks, ignored signals,
# stopped processes, and cleared environments.
_KINDS = {
    "child",
    "daemon",
    "deaf",
    "grandchild",
    "no_token",
    "no_token_orphan",
    "no_token_orphan_group",
    "no_token_own_session",
    "own_session",
    "stopped",
    "worker",
}

# A process that has left its parent, its session and its environment, and has its own program image. Its command line
# has the marker.
_FUGITIVE = """
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0: os._exit(0)
    sleeper = "import time; time.sleep(600)"
    os.execve(sys.executable, [sys.executable, "-c", sleeper, sys.argv[1], "fugitive"], {})
os.wait()
steps(1, 1)
time.sleep(600)
"""

_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); steps(1, 1); time.sleep(600)"


def _submit_hostile(lane: Lane, mode: str) -> tuple[str, Path]:
    # The file's name has the marker; each process of the tree has the file on its command line.
    file = lane.scratch / lane.marker
    return lane.submit(run_config(str(_HOSTILE.absolute()), mode, str(file))), file


def _assert_cancels(lane: Lane, run_id: str) -> None:
    lane.cancel(run_id)
    assert lane.workers() == []
    record = lane.wait_for(run_id, TERM)
    assert "cancelled" in record.failure_reason


def test_tree_that_hides_is_ended(lane: Lane) -> None:
    """CancelRun ends all kinds of descendants."""
    run_id, file = _submit_hostile(lane, "tree")

    def kinds() -> set[str]:
        return {line.split()[0] for line in file.read_text("utf-8").splitlines()} if file.exists() else set()

    wait_until(lambda: kinds() == _KINDS, "all kinds of descendants")
    assert len(lane.workers()) >= len(_KINDS)
    _assert_cancels(lane, run_id)


def test_paused_run_is_ended(lane: Lane) -> None:
    """The run was paused by ControlStream."""
    run_id = lane.run(_DEAF)
    lane.wait_for(run_id, EXEC)
    list(lane.trainer.ControlStream(iter([trainer.ControlEvent(run_id=run_id, pause=True)]), timeout=DEADLINE_SECS))
    await_stopped(*lane.workers())
    _assert_cancels(lane, run_id)


def test_worker_may_print_events_after_sigterm(lane: Lane) -> None:
    """Events printed after SIGTERM are in the table when CancelRun answers."""
    run_id = lane.run(
        "signal.signal(signal.SIGTERM, lambda *_: (steps(2, 100), os._exit(0))); steps(1, 1)\nwhile True: time.sleep(1)"
    )
    lane.wait_for(run_id, EXEC)
    lane.cancel(run_id)
    assert lane.step_indices(run_id) == list(range(1, 101))
    assert lane.record(run_id).status == TERM


def test_remaining_processes_end_with_the_worker(lane: Lane) -> None:
    """Holds without a cancel: after its end a run has no process."""
    run_id = lane.run(
        "os.setsid() if (child := os.fork()) == 0 else None\n"
        "if child == 0: signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)\nsteps(1, 1)"
    )
    lane.wait_for(run_id, TERM)
    assert lane.workers() == []


@pytest.mark.parametrize("kills_proxy", [False, True])
def test_process_that_left_its_session_is_ended(lane: Lane, kills_proxy: bool) -> None:
    """The process has no run token and its own session; its parent is its subreaper, the proxy or the daemon."""
    run_id = lane.run(_FUGITIVE)
    lane.wait_for(run_id, EXEC)
    wait_until(lambda: len(lane.workers()) == 2, "the fugitive")
    if kills_proxy:
        os.kill(lane.wait_for_proxy(run_id), signal.SIGKILL)
    _assert_cancels(lane, run_id)


def test_cancelled_run_in_the_queue_never_starts() -> None:
    """The run waits for a GPU that another run has."""
    with running_lane("--gpu_slots=1") as lane:
        config = lane.program(
            "open(sys.argv[2], 'a').write('x'); steps(1, 1); wait_for('end')", str(lane.scratch / "ran")
        )
        config["resources"]["gpus"] = {"requested": 1, "mandatory": True}
        first, second = lane.submit(config), lane.submit(config)
        lane.wait_for(first, EXEC)
        assert "GPU" in lane.describe(second).waiting_for and lane.record(second).status == INIT
        lane.cancel(second)
        assert lane.record(second).status == TERM
        lane.open("end")
        lane.wait_for(first, TERM)
        third = lane.submit(config)
        lane.wait_for(third, TERM)
        assert (lane.scratch / "ran").read_text("utf-8") == "xx"
        assert not lane.steps(second)


def test_cancel_right_after_submit_ends_the_run(lane: Lane) -> None:
    """The cancel comes at a random moment of the run's start."""
    chance = random.Random(1)
    ran = lane.scratch / "ran"
    for _ in range(20):
        ran.unlink(missing_ok=True)
        run_id = lane.submit(lane.program(f"open(sys.argv[2], 'a').write('x'); {_DEAF}", str(ran)))
        time.sleep(chance.choice([0, chance.uniform(0, 0.1)]))
        _assert_cancels(lane, run_id)
        # The cancel may come before the start, or between opening the file and writing it; no run starts twice.
        assert not ran.exists() or ran.read_text("utf-8") in ("", "x")
    assert lane.workers() == []


@pytest.mark.parametrize("with_proxy", [False, True])
def test_cancel_continues_after_a_restart(with_proxy: bool) -> None:
    """The daemon is killed while it ends the process tree; the next daemon completes the cancel without a request."""
    with running_lane("--kill_grace=2s") as lane:
        run_id = lane.run(_DEAF)
        lane.wait_for(run_id, EXEC)
        asked = lane.trainer.CancelRun.future(trainer.CancelRunRequest(run_id=run_id), timeout=DEADLINE_SECS)
        wait_until(
            lambda: lane.table("SELECT cancel_requested FROM runs WHERE run_id = ?", run_id) == [(1,)],
            "the cancel to be in the table",
        )
        if not with_proxy:
            os.kill(lane.wait_for_proxy(run_id), signal.SIGKILL)
        lane.kill()
        with pytest.raises(grpc.RpcError):
            asked.result(DEADLINE_SECS)
        assert len(lane.workers()) == 2
        lane.start()
        record = lane.wait_for(run_id, TERM)
        assert lane.workers() == [] and "cancelled" in record.failure_reason
        lane.cancel(run_id)


def test_cancel_while_the_daemon_starts(lane: Lane) -> None:
    """The run's proxy has not connected to the new daemon yet."""
    run_id = lane.run(_DEAF)
    lane.wait_for(run_id, EXEC)
    proxy = lane.wait_for_proxy(run_id)
    os.kill(proxy, signal.SIGSTOP)
    lane.restart()
    lane.cancel(run_id)
    assert lane.workers() == []
    os.kill(proxy, signal.SIGCONT)
    lane.wait_for(run_id, TERM)


# Prints also while the daemon stops, and while no daemon runs.
_PRINTS_ON = """
index = 0
while not os.path.exists(os.path.join(GATES, "end")):
    index += 1
    steps(index, index)
    time.sleep(0.001)
"""


def test_daemon_that_stops_leaves_runs_alive() -> None:
    """SIGTERM ends the daemon with code 0; the next daemon completes a cancel in progress and takes over the runs."""
    with running_lane("--kill_grace=2s") as lane:
        other = lane.run(_PRINTS_ON)
        lane.wait_for(other, EXEC)
        proxy, (worker,) = lane.wait_for_proxy(other), lane.workers()
        deaf = lane.run(_DEAF)
        lane.wait_for(deaf, EXEC)
        asked = lane.trainer.CancelRun.future(trainer.CancelRunRequest(run_id=deaf), timeout=DEADLINE_SECS)
        wait_until(
            lambda: lane.table("SELECT cancel_requested FROM runs WHERE run_id = ?", deaf) == [(1,)],
            "the cancel to be in the table",
        )
        assert lane.stop() == 0
        with pytest.raises(grpc.RpcError) as unanswered:
            asked.result(DEADLINE_SECS)
        assert unanswered.value.code() is grpc.StatusCode.ABORTED
        assert is_alive(worker) and lane.proxy(other) == proxy
        lane.start()
        assert "cancelled" in lane.wait_for(deaf, TERM).failure_reason
        assert lane.workers() == [worker] and lane.proxy(other) == proxy
        lane.open("end")
        assert not lane.wait_for(other, TERM).HasField("failure_reason")
        printed = (Path(lane.describe(other).folder) / "stdout.jsonl").read_bytes().count(b"\n")
        assert lane.step_indices(other) == list(range(1, printed + 1))


@pytest.mark.parametrize("proxies_too", [False, True])
def test_next_daemon_starts_a_proxy_for_each_worker(lane: Lane, proxies_too: bool) -> None:
    """The workers are the same processes as before, and CancelRun ends all of them."""
    runs = [lane.run(_DEAF) for _ in range(5)]
    for run_id in runs:
        lane.wait_for(run_id, EXEC)
    workers = sorted(lane.workers())
    proxies = [lane.wait_for_proxy(run_id) for run_id in runs]
    lane.kill()
    if proxies_too:
        for proxy in proxies:
            os.kill(proxy, signal.SIGKILL)
        wait_until(lambda: all(lane.proxy(run_id) is None for run_id in runs), "the proxies to be gone")
    lane.start()
    for run_id, before in zip(runs, proxies, strict=True):
        after = lane.wait_for_proxy(run_id)
        assert (after == before) is not proxies_too
    time_of_start = time.time_ns()

    def beats() -> bool:
        return all(lane.record(run_id).last_heartbeat.ToNanoseconds() > time_of_start for run_id in runs)

    wait_until(beats, "a heartbeat of each run")
    assert sorted(lane.workers()) == workers
    assert {lane.record(run_id).status for run_id in runs} == {EXEC}
    for run_id in runs:
        lane.cancel(run_id)
        assert lane.record(run_id).status == TERM
    assert lane.workers() == []


@pytest.mark.parametrize("kills_proxy", [False, True])
def test_run_whose_folder_is_removed_is_ended(lane: Lane, kills_proxy: bool) -> None:
    """Holds with and without a proxy; no new proxy can start."""
    run_id = lane.run(_DEAF)
    lane.wait_for(run_id, EXEC)
    shutil.rmtree(lane.data_dir / "runs" / run_id)
    if kills_proxy:
        os.kill(lane.wait_for_proxy(run_id), signal.SIGKILL)
    _assert_cancels(lane, run_id)
