"""A worker that supports pauses is told before the daemon stops its processes.

The test is the worker's connection: it registers and has the ControlStream, so that it decides when to answer. The
processes are those of a real run.
"""

import concurrent.futures
import os
import queue
import signal
from typing import Any

import grpc
import pytest

from schema.protos import slow_lane_pb2 as slow_lane
from schema.protos import trainer_pb2 as trainer
from slow_lane.testing.daemon_fixture import (  # noqa: F401, two are fixtures
    EXEC,
    PAUSE,
    Lane,
    lane_fixture,
    watchdog,
)
from tandem.testing.daemons import DEADLINE_SECS, await_stopped, process_state, wait_until


class _Ear:
    """The ControlStream of a worker that supports pauses."""

    def __init__(self, lane: Lane, run_id: str, worker_id: str = "learner") -> None:
        self._run_id = run_id
        request = trainer.RegisterWorkerRequest(run_id=run_id, worker_id=worker_id, supports_pause=True)
        token = lane.trainer.RegisterWorker(request, timeout=DEADLINE_SECS).session_token
        self._sent: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = lane.trainer.ControlStream(
            iter(self._sent.get, None), metadata=[("session-token", token)], timeout=DEADLINE_SECS
        )
        self.send()

    def send(self, **event: bool) -> None:
        self._sent.put(trainer.ControlEvent(run_id=self._run_id, **event))

    def hears(self) -> str:
        event: str = next(self._call).WhichOneof("event")
        return event

    def close(self) -> None:
        self._sent.put(None)
        self._call.cancel()


_CALLS = concurrent.futures.ThreadPoolExecutor()


def _control(lane: Lane, run_id: str, **event: bool) -> "concurrent.futures.Future[list[Any]]":
    """Sends a client's message, in its own thread."""
    messages = iter([trainer.ControlEvent(run_id=run_id, **event)])
    return _CALLS.submit(lambda: list(lane.trainer.ControlStream(messages, timeout=DEADLINE_SECS)))


def _running(lane: Lane) -> tuple[str, int]:
    """Starts a run and returns its run_id and its process."""
    run_id = lane.run("steps(1, 1); wait_for('end')")
    lane.wait_for(run_id, EXEC)
    (pid,) = lane.workers()
    return run_id, pid


def _code(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as refused:
        call.result(DEADLINE_SECS)
    code: grpc.StatusCode = refused.value.code()
    return code


def test_a_worker_is_stopped_after_its_answer(lane: Lane) -> None:
    """Its processes run until it answers, and it hears of the resume after SIGCONT."""
    run_id, pid = _running(lane)
    ear = _Ear(lane, run_id)
    assert ear.hears() == "resume"  # the state when it begins to listen
    paused = _control(lane, run_id, pause=True)
    assert ear.hears() == "pause"
    assert not paused.done() and process_state(pid) != "T" and lane.record(run_id).status == EXEC
    ear.send(pause=True)
    paused.result(DEADLINE_SECS)
    await_stopped(pid)
    assert lane.record(run_id).status == PAUSE
    _control(lane, run_id, resume=True).result(DEADLINE_SECS)
    assert ear.hears() == "resume"
    assert process_state(pid) != "T" and lane.record(run_id).status == EXEC
    again = _control(lane, run_id, pause=True)  # an earlier answer does not count
    assert ear.hears() == "pause"
    assert lane.record(run_id).status == EXEC and not again.done()
    ear.send(pause=True)
    again.result(DEADLINE_SECS)
    ear.close()


def test_a_newer_stream_of_a_worker_replaces_its_earlier_one(lane: Lane) -> None:
    """The answer of the earlier one has no effect; one that begins to listen meanwhile is told as well."""
    run_id, _ = _running(lane)
    earlier = _Ear(lane, run_id)
    assert earlier.hears() == "resume"
    paused = _control(lane, run_id, pause=True)
    assert earlier.hears() == "pause"
    newer = _Ear(lane, run_id)
    assert newer.hears() == "pause" and earlier.hears() == "resume"
    newer.send(pause=True)
    paused.result(DEADLINE_SECS)
    earlier.send(pause=True)
    with pytest.raises(grpc.RpcError) as refused:
        earlier.hears()
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_run_that_ends_during_the_wait_is_not_paused(lane: Lane) -> None:
    """The process dies: at once, before the worker answers."""
    run_id, pid = _running(lane)
    ear = _Ear(lane, run_id)
    assert ear.hears() == "resume"
    paused = _control(lane, run_id, pause=True)
    assert ear.hears() == "pause"
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: lane.record(run_id).status == trainer.RUN_STATUS_FAULT, "the run to fail")
    ear.close()
    assert _code(paused) is grpc.StatusCode.FAILED_PRECONDITION


def test_a_worker_without_the_capability_is_stopped_at_once(lane: Lane) -> None:
    """With its session token it can pause its run, as a client."""
    run_id, pid = _running(lane)
    request = trainer.RegisterWorkerRequest(run_id=run_id, worker_id="plain")
    token = lane.trainer.RegisterWorker(request, timeout=DEADLINE_SECS).session_token
    pause = trainer.ControlEvent(run_id=run_id, pause=True)
    metadata = [("session-token", token)]
    assert list(lane.trainer.ControlStream(iter([pause]), metadata=metadata, timeout=DEADLINE_SECS)) == []
    await_stopped(pid)
    with pytest.raises(grpc.RpcError) as refused:
        list(lane.trainer.ControlStream(iter([pause]), metadata=[("session-token", "guessed")]))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_capabilities_are_stored(lane: Lane) -> None:
    """They are those of the worker's newest call; the next daemon has them, also after the run's end."""
    run_id, _ = _running(lane)
    for kind in ("first", "second"):
        lane.trainer.RegisterWorker(
            trainer.RegisterWorkerRequest(
                run_id=run_id,
                worker_id="learner",
                worker_kind=kind,
                proto_version="MOSAIC/1.3",
                schema_id="their.schema",
                schema_version=1,
                supports_pause=True,
                supports_checkpoint=True,
            )
        )
    before = lane.describe(run_id).workers
    (worker,) = before
    assert (worker.worker_id, worker.worker_kind, worker.proto_version) == ("learner", "second", "MOSAIC/1.3")
    assert (worker.schema_id, worker.schema_version) == ("their.schema", 1)
    assert worker.supports_pause and worker.supports_checkpoint
    wait_until(lambda: lane.table("SELECT count(*) FROM workers WHERE worker_kind = 'second'")[0][0], "the row")
    lane.restart()
    assert lane.describe(run_id).workers == before
    lane.cancel(run_id)
    assert lane.describe(run_id).workers == before
    lane.slow_lane.DeleteRun(slow_lane.DeleteRunRequest(run_id=run_id), timeout=DEADLINE_SECS)
    wait_until(lambda: lane.table("SELECT count(*) FROM workers")[0][0] == 0, "the rows to be removed")


def test_a_daemon_stops_while_it_waits_for_an_answer(lane: Lane) -> None:
    """The run goes on, and the next daemon can pause it."""
    run_id, pid = _running(lane)
    ear = _Ear(lane, run_id)
    assert ear.hears() == "resume"
    paused = _control(lane, run_id, pause=True)
    assert ear.hears() == "pause"
    assert lane.stop() == 0
    with pytest.raises(grpc.RpcError):
        paused.result(DEADLINE_SECS)
    assert process_state(pid) != "T"
    lane.start()
    assert lane.record(run_id).status == EXEC
    _control(lane, run_id, pause=True).result(DEADLINE_SECS)
    await_stopped(pid)
