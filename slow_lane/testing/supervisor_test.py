"""The daemon's handling of a run before its start, between two daemons, and at its end.

Length: one short test for each case, all with the same helper functions.
"""

import concurrent.futures
import contextlib
import os
import re
import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from schema.protos import slow_lane_pb2 as slow_lane
from schema.protos import trainer_pb2 as trainer
from slow_lane.testing.daemon_fixture import (  # noqa: F401, two are fixtures
    EXEC,
    FAULT,
    INIT,
    PAUSE,
    RDY,
    TERM,
    Lane,
    lane_fixture,
    running_lane,
    watchdog,
)
from tandem.testing.daemons import (
    DEADLINE_SECS,
    await_stopped,
    await_worker,
    process_state,
    proxies_of,
    run_config,
    wait_until,
)


@pytest.fixture(name="one_gpu")
def one_gpu_fixture() -> Iterator[Lane]:
    """A daemon with one GPU slot."""
    with running_lane("--heartbeat=200ms", "--timeout=1s", "--kill_grace=500ms", "--gpu_slots=1") as lane:
        yield lane


def _with_gpu(config: dict[str, Any], mandatory: bool = True) -> dict[str, Any]:
    return config | {"resources": config["resources"] | {"gpus": {"requested": 1, "mandatory": mandatory}}}


def _change_table(lane: Lane, sql: str, *values: Any) -> None:
    """Changes the table while no daemon runs."""
    with closing(sqlite3.connect(lane.data_dir / "tandem.db")) as base:
        assert base.execute(sql, values).rowcount == 1
        base.commit()


def _publish(lane: Lane, run_id: str, first: int, last: int) -> Any:
    """Publishes numbered steps as a worker without a worker_id."""
    lane.trainer.RegisterWorker(trainer.RegisterWorkerRequest(run_id=run_id), timeout=DEADLINE_SECS)
    steps = (
        trainer.RunStep(run_id=run_id, seq_id=number, step_index=1000 + number) for number in range(first, last + 1)
    )
    return lane.trainer.PublishRunSteps(steps, timeout=DEADLINE_SECS)


def test_a_silent_worker_is_ended_if_it_has_sent_heartbeats() -> None:
    """Its run is FAULT with the reason, and its GPU is free for the next run."""
    with running_lane("--heartbeat=200ms", "--fault_after=1s", "--kill_grace=200ms", "--gpu_slots=1") as lane:
        silent = lane.submit(_with_gpu(lane.program("steps(1, 1); time.sleep(600)")))
        lane.wait_for(silent, EXEC)
        other = lane.submit(_with_gpu(lane.program("steps(1, 1); time.sleep(600)")))
        lane.trainer.RegisterWorker(trainer.RegisterWorkerRequest(run_id=silent, worker_id="own"))
        lane.trainer.Heartbeat(trainer.HeartbeatRequest(run_id=silent))
        assert "none for 1s (--fault_after)" in lane.wait_for(silent, FAULT).failure_reason
        lane.wait_for(other, EXEC)  # it has sent none: it is never ended for silence


def test_a_silent_worker_is_ended_if_its_configuration_has_a_limit() -> None:
    """From its first line on, also with the next daemon; text lines are signs of life."""

    def limited(secs: int, source: str) -> Any:
        return lane.program(source) | {"metadata": {"tandem": {"fault_after": secs}}}

    with running_lane("--heartbeat=200ms", "--fault_after=1s", "--kill_grace=200ms") as lane:
        talks = "while not os.path.exists(GATES + '/silent'): print('text', flush=True); time.sleep(0.2)\n"
        talking = lane.submit(limited(5, f"steps(1, 1)\n{talks}time.sleep(600)"))
        restarted = lane.submit(limited(3, "steps(1, 1); time.sleep(600)"))
        lane.wait_for(talking, EXEC)
        lane.wait_for(restarted, EXEC)
        lane.restart()
        reason = "printed or sent heartbeats, and then neither for 3s (metadata.tandem.fault_after)"
        assert reason in lane.wait_for(restarted, FAULT).failure_reason
        assert lane.record(talking).status == EXEC
        lane.open("silent")
        lane.wait_for(talking, FAULT)


def test_a_printed_heartbeat_counts_as_a_call() -> None:
    """The worker needs no gRPC; others must follow, or any line, within --fault_after."""
    with running_lane("--heartbeat=200ms", "--fault_after=1s", "--kill_grace=200ms") as lane:
        silent = lane.run('print(json.dumps({"event": "heartbeat"}), flush=True); time.sleep(600)')
        assert "heartbeats, and then none for 1s (--fault_after)" in lane.wait_for(silent, FAULT).failure_reason


def test_resources_are_limits_if_the_configuration_says_so(lane: Lane) -> None:
    """The worker has as many processors as it requested; above its memory the run is FAULT, with both figures."""
    source = """
keep = int(os.environ["TANDEM_KEEP_CHECKPOINTS"])
assert os.environ["TANDEM_OUTPUT_PREFIX"] == "runs/test"
event = {"event_type": "episode", "episode": keep, "total_reward": len(os.sched_getaffinity(0)), "steps": 1}
print(json.dumps(event))
wait_for("more")
memory = b"x" * (300 << 20)
time.sleep(600)
"""
    config = lane.program(source) | {"metadata": {"tandem": {"enforce_resources": True}}}
    run_id = lane.submit(config)
    lane.wait_for(run_id, EXEC)
    ((keep, cpus),) = lane.table("SELECT episode_index, total_reward FROM episodes WHERE run_id = ?", run_id)
    assert keep == 0 and cpus == 1
    lane.open("more")
    reason = lane.wait_for(run_id, FAULT).failure_reason
    found = re.search(r"used (\d+) MiB \(PSS\), more than resources.memory_mb = 256", reason)
    assert found and int(found[1]) > 256, reason


def test_a_worker_of_another_protocol_is_refused(lane: Lane) -> None:
    """The message has both versions; an empty version and a later minor version are accepted."""
    run_id = lane.run("wait_for('end')")
    wait_until(lambda: lane.describe(run_id).worker_pid, "the worker")
    for version, accepted in (("", "MOSAIC/1.0"), ("MOSAIC/1.7", "MOSAIC/1.7")):
        request = trainer.RegisterWorkerRequest(run_id=run_id, proto_version=version, schema_version=1)
        assert lane.trainer.RegisterWorker(request).accepted_version == accepted
    for fields, found in (
        ({"proto_version": "MOSAIC/2.0"}, "MOSAIC/2.0"),
        ({"proto_version": "MOSAIC/1."}, "MOSAIC/1."),
        ({"proto_version": "1"}, "'1'"),
        ({"schema_version": 2}, "schema version 1, which this daemon knows, found 2"),
    ):
        with pytest.raises(grpc.RpcError) as refusal:
            lane.trainer.RegisterWorker(trainer.RegisterWorkerRequest(run_id=run_id, **fields))
        assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert found in refusal.value.details()


def test_printed_and_published_steps_are_numbered_separately(lane: Lane) -> None:
    """Both kinds are numbered from 1 with the same worker_id; repeated published steps are dropped."""
    run_id = lane.run("steps(1, 10); wait_for('more'); steps(11, 40); wait_for('end')")
    lane.wait_for_steps(run_id, 10)
    assert _publish(lane, run_id, 1, 20).accepted == 20
    lane.restart()
    lane.wait_for_proxy(run_id)
    wait_until(lambda: lane.record(run_id).status == EXEC, "the run to be known")
    again = _publish(lane, run_id, 11, 25)
    assert (again.accepted, again.dropped) == (5, 10)
    lane.open("more")
    lane.wait_for_steps(run_id, 65)
    lane.open("end")
    lane.wait_for(run_id, TERM)
    indices = lane.step_indices(run_id)
    assert [index for index in indices if index < 1000] == list(range(1, 41))
    assert [index for index in indices if index > 1000] == list(range(1001, 1026))


def test_a_deleted_runs_remaining_folder_is_removed_by_the_next_daemon(lane: Lane) -> None:
    """The daemon is killed before it removed the folder's files; afterwards a new run with this run_id executes."""
    config = lane.program("open(sys.argv[2], 'a').write('x'); steps(1, 3)", str(lane.scratch / "ran"))
    run_id = lane.submit(config, "again")
    lane.wait_for(run_id, TERM)
    folder = Path(lane.describe(run_id).folder)
    (folder / "many").mkdir()
    for number in range(20_000):
        (folder / "many" / str(number)).touch()
    call = lane.slow_lane.DeleteRun.future(slow_lane.DeleteRunRequest(run_id=run_id), timeout=DEADLINE_SECS)
    wait_until(lambda: lane.table("SELECT count(*) FROM runs") == [(0,)], "the run to leave the table")
    lane.kill()
    with suppress(grpc.RpcError):
        call.result()
    assert not folder.exists()
    lane.start()
    wait_until(lambda: not list((lane.data_dir / "runs").iterdir()), "the folder to be removed")
    lane.submit(config, "again")
    lane.wait_for(run_id, TERM)
    assert (lane.scratch / "ran").read_text("utf-8") == "xx"
    assert lane.step_indices(run_id) == [1, 2, 3]


def test_a_run_waits_while_its_folder_has_another_workers_record(lane: Lane) -> None:
    """The run waits, shows the reason, and starts when the folder is removed."""
    folder = lane.data_dir / "runs" / "mine"
    folder.mkdir(parents=True)
    (folder / "worker").write_text("1 1 boot\n", "utf-8")
    run_id = lane.submit(lane.program("steps(1, 1)"), "mine")
    wait_until(lambda: "worker" in lane.describe(run_id).waiting_for, "the reason to be shown")
    assert str(folder) in lane.describe(run_id).waiting_for
    assert lane.record(run_id).status == INIT
    shutil.rmtree(folder)
    lane.wait_for(run_id, TERM)


def test_a_run_has_its_gpu_from_the_start_of_its_proxy(one_gpu: Lane) -> None:
    """The daemon is killed after it started the proxy, and before the proxy connected."""
    lane = one_gpu
    config = _with_gpu(
        lane.program(
            "open(sys.argv[2], 'a').write(os.environ['CUDA_VISIBLE_DEVICES']); steps(1, 1); wait_for('end')",
            str(lane.scratch / "gpus"),
        )
    )
    # The folder in place of the lock file keeps each proxy of this run from taking the lock.
    lock = lane.data_dir / "runs" / "first" / "proxy.lock"
    lock.mkdir(parents=True)
    first = lane.submit(config, "first")
    wait_until(lambda: lane.table("SELECT proxy_starts FROM runs") > [(0,)], "the first proxy")
    lane.restart()
    second = lane.submit(config, "second")
    wait_until(lambda: "GPU" in lane.describe(second).waiting_for, "the second run to wait")
    lock.rmdir()
    lane.wait_for(first, EXEC)
    assert lane.record(second).status == INIT
    assert list(lane.record(first).gpu_slots) == [0]
    lane.open("end")
    lane.wait_for(first, TERM)
    lane.wait_for(second, TERM)
    assert (lane.scratch / "gpus").read_text("utf-8") == "00"


def test_an_exit_is_known_although_the_proxy_died_at_the_launch(lane: Lane) -> None:
    """The daemon does not know the worker's pid at that moment."""
    # The search in a long PATH takes time; meanwhile the record exists, but the program does not execute yet.
    path = "x:" * 60_000 + os.environ["PATH"]

    def died_first(attempt: int) -> bool:
        """Kills a run's proxy at the launch; returns False if it had waited for the worker already."""
        run_id = lane.submit(run_config("true", PATH=path), f"quick-{attempt}")
        folder = lane.data_dir / "runs" / run_id
        worker = await_worker(folder)
        os.kill(lane.pid, signal.SIGSTOP)
        for proxy in proxies_of(lane.data_dir, run_id):
            with contextlib.suppress(ProcessLookupError):
                os.kill(proxy, signal.SIGKILL)
        wait_until(lambda: process_state(worker) in ("Z", ""), "the worker to end")
        is_child_of_daemon = process_state(worker) == "Z"
        os.kill(lane.pid, signal.SIGCONT)
        lane.wait_for(run_id, TERM)
        assert (folder / "exit").read_text("utf-8") == "exited 0\n"
        return is_child_of_daemon

    assert any(died_first(attempt) for attempt in range(10))


def test_cancel_of_a_waiting_run_is_answered_on_a_full_disk(one_gpu: Lane) -> None:
    """The error reports that the cancellation was not stored, since the next daemon would start the run."""
    lane = one_gpu
    config = _with_gpu(lane.program("steps(1, 1); wait_for('end')"))
    first, second = lane.submit(config), lane.submit(config)
    lane.wait_for(first, EXEC)
    with lane.no_commits():
        wait_until(lambda: lane.record(second).status == INIT, "the second run to wait")
        with pytest.raises(grpc.RpcError) as refused:
            lane.cancel(second)
        assert refused.value.code() is grpc.StatusCode.ABORTED
        assert "could not be stored" in refused.value.details()
    lane.wait_for(second, TERM)
    lane.cancel(second)
    lane.open("end")
    lane.wait_for(first, TERM)


def test_cancel_that_a_stopping_daemon_cannot_store_is_aborted(lane: Lane) -> None:
    """With an answer, the client would take the run's later state, FAULTED, as the result of its cancel."""
    run_id = lane.run("signal.signal(signal.SIGTERM, signal.SIG_IGN); steps(1, 1); wait_for('never')")
    lane.wait_for(run_id, EXEC)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, lane.no_commits():
        cancel = pool.submit(lane.cancel, run_id)
        wait_until(lambda: not lane.healthy(), "the store to wait with the cancel")
        assert lane.stop() == 0
        refused = cancel.exception()
    assert isinstance(refused, grpc.RpcError)
    assert refused.code() is grpc.StatusCode.ABORTED
    assert "not written down" in refused.details()
    lane.start()
    lane.wait_for(run_id, FAULT)


def test_a_waiting_run_is_not_unreachable(one_gpu: Lane) -> None:
    """It has no process; a run whose proxy is stopped is unreachable at the same time."""
    lane = one_gpu
    program = lane.program("steps(1, 1); wait_for('end')")
    first, third, second = lane.submit(_with_gpu(program)), lane.submit(program), lane.submit(_with_gpu(program))
    for each in (first, third):
        lane.wait_for(each, EXEC)
    proxy = lane.wait_for_proxy(third)
    os.kill(proxy, signal.SIGSTOP)
    wait_until(lambda: lane.describe(third).unreachable, "the third run to be unreachable")
    assert not lane.describe(second).unreachable
    os.kill(proxy, signal.SIGCONT)
    lane.open("end")
    lane.wait_for(first, TERM)
    wait_until(lambda: lane.record(second).status not in (INIT,), "the second run to start")
    assert not lane.describe(second).unreachable
    lane.wait_for(second, TERM)


def test_runs_without_gpus_pass_those_that_wait_for_them(one_gpu: Lane) -> None:
    """Runs that request GPUs keep their order, also if the GPUs are not mandatory."""
    lane = one_gpu
    ran = str(lane.scratch / "ran")
    source = "open(sys.argv[2], 'a').write(sys.argv[3]); steps(1, 1); wait_for(sys.argv[3])"
    first = lane.submit(_with_gpu(lane.program(source, ran, "1")))
    lane.wait_for(first, EXEC)
    second = lane.submit(_with_gpu(lane.program(source, ran, "2")))
    third = lane.submit(_with_gpu(lane.program(source, ran, "3"), mandatory=False))
    other = lane.submit(lane.program(source, ran, "4"))
    lane.wait_for(other, EXEC)
    for waits in (second, third):
        assert lane.record(waits).status == INIT and "GPU" in lane.describe(waits).waiting_for
    for name, run_id in (("4", other), ("1", first), ("2", second)):
        lane.wait_for(run_id, EXEC)
        lane.open(name)
        lane.wait_for(run_id, TERM)
    lane.open("3")
    lane.wait_for(third, TERM)
    # Both started when the GPU was free again: the run submitted first has it.
    assert [list(lane.record(run_id).gpu_slots) for run_id in (second, third)] == [[0], []]
    text = (lane.scratch / "ran").read_text("utf-8")
    assert text.startswith("14") and sorted(text) == list("1234")


def test_nothing_is_started_before_the_daemon_serves(one_gpu: Lane) -> None:
    """A run that fails during the daemon's start frees its GPU; the next run starts only when the daemon listens."""
    lane = one_gpu
    hold = lane.submit(_with_gpu(lane.program("steps(1, 1); wait_for('end')")))
    lane.wait_for(hold, EXEC)
    source = "open(sys.argv[2], 'w').write(os.environ['TANDEM_DAEMON']); steps(1, 1)"
    waits = lane.submit(_with_gpu(lane.program(source, str(lane.scratch / "address"))))
    broken = lane.submit(_with_gpu(lane.program("steps(1, 1)")))
    assert lane.record(broken).status == INIT
    lane.kill()
    _change_table(lane, "UPDATE runs SET config_json = '{}' WHERE run_id = ?", broken)
    lane.daemon.flags = (*lane.flags, "--gpu_slots=2")
    lane.start()
    lane.wait_for(waits, TERM)
    assert (lane.scratch / "address").read_text("utf-8") == lane.address
    assert "configuration" in lane.record(broken).failure_reason
    lane.open("end")
    lane.wait_for(hold, TERM)


def _scheduled(lane: Lane, source: str, max_steps: int, stride: int) -> str:
    schedule = {"schedule": {"max_steps": max_steps}, "metadata": {"tandem": {"step_stride": stride}}}
    return lane.submit(lane.program(source) | schedule)


def test_max_steps_counts_what_is_printed(lane: Lane) -> None:
    """Steps that the stride drops count as well: of 15 steps, two are stored."""
    run_id = _scheduled(lane, "steps(1, 15); time.sleep(600)", 15, 10)
    assert "max_steps" in lane.wait_for(run_id, TERM).failure_reason
    assert lane.step_indices(run_id) == [1, 11]


def test_max_steps_counts_what_is_published(lane: Lane) -> None:
    """Each published step counts as one, regardless of the stride of printed steps."""
    other = _scheduled(lane, "wait_for('never')", 20, 100)
    wait_until(lambda: lane.record(other).status not in (INIT, trainer.RUN_STATUS_HSHK), "the other worker")
    _publish(lane, other, 1, 20)
    assert "max_steps" in lane.wait_for(other, TERM).failure_reason


def test_pause_stops_the_processes_that_cancel_ends(lane: Lane) -> None:
    """Pause stops all processes of the run; control events sent together take effect in order."""
    run_id = lane.run("os.fork(); steps(1, 1); time.sleep(600)")
    lane.wait_for(run_id, EXEC)
    wait_until(lambda: len(lane.workers()) == 2, "both processes")

    def control(*events: trainer.ControlEvent) -> None:
        list(lane.trainer.ControlStream(iter(events), timeout=DEADLINE_SECS))

    pause, resume = (trainer.ControlEvent(run_id=run_id, pause=True), trainer.ControlEvent(run_id=run_id, resume=True))
    control(pause)
    await_stopped(*lane.workers())
    control(resume, pause, resume)
    wait_until(lambda: "T" not in {process_state(pid) for pid in lane.workers()}, "both to go on")
    assert lane.record(run_id).status == EXEC
    control(pause)
    lane.cancel(run_id)
    assert lane.workers() == []
    assert lane.record(run_id).status == TERM


def test_unwanted_logs_are_removed_by_the_next_daemon(lane: Lane) -> None:
    """The daemon is killed after it stored the run's end, and before it removed the logs."""
    config = lane.program("steps(1, 3)")
    config["artifacts"]["persist_logs"] = False
    run_id, kept = lane.submit(config), lane.run("steps(1, 3)")
    lane.wait_for(run_id, TERM)
    lane.wait_for(kept, TERM)
    logs = Path(lane.describe(run_id).folder) / "stdout.jsonl"
    wait_until(lambda: not logs.exists(), "the logs to be removed")
    lane.kill()
    logs.write_text("as if it had been killed before\n", "utf-8")
    lane.start()
    wait_until(lambda: not logs.exists(), "the logs to be removed by the next one")
    assert (Path(lane.describe(kept).folder) / "stdout.jsonl").exists()


def test_a_run_without_folder_and_proxy_fails_when_its_processes_have_ended(lane: Lane) -> None:
    """While a process is alive, the run stays EXECUTING."""
    run_id = lane.run("steps(1, 1); wait_for('end')")
    other = lane.run("steps(1, 1); wait_for('never')")
    for each in (run_id, other):
        lane.wait_for(each, EXEC)
        shutil.rmtree(lane.describe(each).folder)
        os.kill(lane.wait_for_proxy(each), signal.SIGKILL)
    lane.open("end")
    reason = lane.wait_for(run_id, FAULT).failure_reason
    assert "folder" in reason and run_id in reason, reason
    assert lane.record(other).status == EXEC and len(lane.workers()) == 1
    lane.cancel(other)
    assert lane.workers() == []


@pytest.mark.parametrize("name", ["config.json", "launch.json", "worker"])
def test_a_run_whose_folder_is_damaged_ends(one_gpu: Lane, name: str) -> None:
    """No proxy starts for it. It ends by a cancel, or with its worker, and its GPU slot is free again."""
    lane = one_gpu
    cancelled = lane.submit(_with_gpu(lane.program("steps(1, 1); wait_for('never')")))
    failed = lane.run("steps(1, 1); wait_for('end')")
    for each in (cancelled, failed):
        lane.wait_for(each, EXEC)
        (Path(lane.describe(each).folder) / name).write_text("[1,", "utf-8")
        os.kill(lane.wait_for_proxy(each), signal.SIGKILL)
    wait_until(lambda: "damaged" in lane.describe(failed).output_problem, "the remark")
    assert len(lane.workers()) == 2
    lane.open("end")
    assert "damaged" in lane.wait_for(failed, FAULT).failure_reason
    lane.cancel(cancelled)
    assert lane.workers() == []
    reason = lane.wait_for(cancelled, TERM).failure_reason
    assert "cancelled" in reason and "damaged" in reason
    lane.wait_for(lane.submit(_with_gpu(lane.program("steps(1, 1)"))), TERM)


def test_a_worker_without_its_record_is_not_started_again(lane: Lane) -> None:
    """The database records that the run had a worker."""
    run_id = lane.run("steps(1, 1); wait_for('end')")
    lane.wait_for(run_id, EXEC)
    (worker,) = lane.workers()
    (Path(lane.describe(run_id).folder) / "worker").unlink()
    os.kill(lane.wait_for_proxy(run_id), signal.SIGKILL)
    wait_until(lambda: "damaged" in lane.describe(run_id).output_problem, "the remark")
    assert lane.workers() == [worker]
    lane.open("end")
    assert "damaged" in lane.wait_for(run_id, FAULT).failure_reason


def test_a_cancelled_run_with_a_stopped_proxy_ends(lane: Lane) -> None:
    """The daemon continues the proxy with SIGCONT, so that it reports the exit."""
    run_id = lane.run("steps(1, 1); wait_for('never')")
    lane.wait_for(run_id, EXEC)
    os.kill(lane.wait_for_proxy(run_id), signal.SIGSTOP)
    lane.cancel(run_id)
    assert lane.wait_for(run_id, TERM).failure_reason == "cancelled"


def test_removed_socket_is_reported(lane: Lane) -> None:
    """Proxies cannot reach the daemon; the next daemon creates the socket again, and no step is lost."""
    (lane.data_dir / "daemon.sock").unlink()
    assert not lane.healthy() and "socket" in lane.daemon_state().daemon_state
    run_id = lane.run("steps(1, 3)")
    lane.restart()
    assert lane.healthy()
    lane.wait_for(run_id, TERM)
    assert lane.step_indices(run_id) == [1, 2, 3]


def test_the_daemon_raises_its_own_descriptor_limit_but_not_the_workers() -> None:
    """The daemon needs two descriptors for each run; workers start with the daemon's original limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with running_lane(starts=False) as lane:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        try:
            lane.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        run_id = lane.run(
            "import resource; open(sys.argv[2], 'w').write(str(resource.getrlimit(resource.RLIMIT_NOFILE)))",
            str(lane.scratch / "limit"),
        )
        lane.wait_for(run_id, TERM)
        assert (lane.scratch / "limit").read_text("utf-8") == str((512, hard))
        assert resource.prlimit(lane.pid, resource.RLIMIT_NOFILE) == (hard, hard)
