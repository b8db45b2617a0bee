"""Methods of `TrainerClient` that only Tandem's daemon supports: descriptions, pause, deletion, all event streams."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.telemetry import RunDescription, RunStatus, TrainerClient, UnknownRun, WrongState
from tandem.testing.daemons import Daemon, Gate, running_daemon, wait_until
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

_PROGRAM = """
for i in range(25): step(i, ts_unix_ns=1_700_000_000_000_000_000 + i)
for i in range(12): episode(i)
print("a text line")
print('{"event": "run_started", "payload": {"a": 1}, "worker_id": "w"}')
print('{"broken": ', flush=True)
wait_for("end")
"""


@pytest.fixture(name="daemon", scope="module")
def daemon_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Starts a daemon with two GPU slots."""
    with running_daemon(tmp_path_factory.mktemp("data"), "--gpu_slots=2") as daemon:
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


def _described(client: TrainerClient, run_id: str, holds: Callable[[RunDescription], bool]) -> RunDescription:
    """Waits until a run's description satisfies a condition, and returns it."""

    def found() -> RunDescription | None:
        (run,) = client.describe(run_id).runs
        return run if holds(run) else None

    described = wait_until(found, f"that of {run_id}")
    assert isinstance(described, RunDescription)
    return described


def test_describe_has_every_fact_of_a_run(client: TrainerClient, gate: Gate, daemon: Daemon) -> None:
    """Describes one running run by its id, and among all runs."""
    config: dict[str, Any] = gate.program(_PROGRAM) | {"run_name": "first", "schedule": {"max_steps": 1000}}
    config["metadata"] = {"tandem": {"step_stride": 10}}
    run_id = client.submit(config).run_id
    run = _described(client, run_id, lambda run: run.malformed == 1 and run.run.status == RunStatus.EXEC)
    assert (run.run.run_id, run.run.status, run.run_name) == (run_id, RunStatus.EXEC, "first")
    assert (run.steps, run.steps_printed, run.episodes, run.lifecycle, run.text_lines) == (3, 25, 12, 1, 1)
    assert (run.last_return, run.max_steps, run.proxy_starts) == (1.5, 1000, 1)
    assert (run.unreachable, run.waiting_for, run.output_problem) == (False, "", "")
    assert Path(run.folder) == daemon.data_dir / "runs" / run_id
    assert run.worker_pid > 0 and run.bytes_read == daemon.output_of(run_id).stat().st_size
    assert run.last_event == datetime.fromtimestamp(1_700_000_000, UTC)
    assert '"step_stride":10' in run.config_json.replace(" ", "")
    assert math.isfinite(run.steps_per_second)
    every = client.describe()
    assert (every.state, every.runs[-1].run.run_id, every.runs[-1].config_json) == ("ok", run_id, "")
    assert (every.queued_bytes, every.oldest_queued_secs, every.watchers) == (0, 0.0, 0)
    gate.open("end")


def test_missing_events_and_limits_are_none(client: TrainerClient, gate: Gate) -> None:
    """A run without events has None for them; a run in the queue has `waiting_for`."""
    config: dict[str, Any] = gate.program("wait_for('end')")
    config["resources"]["gpus"] = {"requested": 2, "mandatory": True}
    holder, waiter = (client.submit(config).run_id for _ in range(2))
    run = _described(client, waiter, lambda run: run.waiting_for == "2 GPUs")
    assert (run.last_return, run.last_event, run.max_steps, run.worker_pid) == (None, None, None, 0)
    gate.open("end")
    for run_id in (holder, waiter):
        _described(client, run_id, lambda run: run.run.status.final)


def test_every_stream_is_read_up_to_now_or_to_the_end(client: TrainerClient, gate: Gate) -> None:
    """With follow=False a stream ends at the newest event, although the run continues."""
    run_id = client.submit(gate.program(_PROGRAM + "step(25)\nepisode(12)\nprint('{2')\n")).run_id
    _described(client, run_id, lambda run: run.malformed == 1)
    assert [step.seq_id for step in client.steps(run_id, follow=False)] == list(range(1, 26))
    assert [episode.seq_id for episode in client.episodes(run_id, since_seq=10, follow=False)] == [11, 12]
    assert [episode.episode_index for episode in client.last_episodes(run_id, 3)] == [9, 10, 11]
    assert len(client.last_episodes(run_id, 100)) == 12
    (event,) = client.lifecycle(run_id, follow=False)
    assert (event.seq_id, event.event, event.payload, event.worker_id) == (1, "run_started", {"a": 1}, "w")
    (line,) = client.malformed(run_id, follow=False)
    assert (line.seq_id, line.length, line.head) == (1, 11, '{"broken": ') and "expected" in line.reason
    with client.malformed(run_id) as malformed, client.lifecycle(run_id, since_seq=1) as lifecycle:
        assert next(malformed) == line
        gate.open("end")
        (last,) = malformed
        assert (last.seq_id, last.offset > line.offset, last.head) == (2, True, "{2")
        assert list(lifecycle) == []
    assert len(list(client.steps(run_id))) == 26


def test_a_run_is_paused_resumed_and_deleted(client: TrainerClient, gate: Gate) -> None:
    """Each call works in some states, and is WrongState in the others."""
    run_id = client.submit(gate.program("step(0); sys.stdout.flush(); wait_for('end')")).run_id
    _described(client, run_id, lambda run: run.run.status == RunStatus.EXEC)
    client.pause(run_id)
    assert client.describe(run_id).runs[0].run.status == RunStatus.PAUSE
    client.pause(run_id)  # safe twice, and so is resume
    with pytest.raises(WrongState):
        client.delete(run_id)
    client.resume(run_id)
    client.resume(run_id)
    gate.open("end")
    _described(client, run_id, lambda run: run.run.status == RunStatus.TERM)
    for refused in (client.pause, client.resume):
        with pytest.raises(WrongState):
            refused(run_id)
    client.delete(run_id)
    for call in (client.describe, client.delete, client.pause, lambda run_id: client.last_episodes(run_id, 1)):
        with pytest.raises(UnknownRun):
            call(run_id)
    with pytest.raises(UnknownRun):
        next(client.malformed(run_id))


def test_invalid_values_are_refused(client: TrainerClient) -> None:
    """The client refuses the value and sends nothing."""
    for call in (
        lambda: client.describe("a", b"b"),  # type: ignore[arg-type]
        lambda: client.describe("\ud800"),
        lambda: client.last_episodes("run", 0),
        lambda: client.lifecycle("run", since_seq=-1),
        lambda: client.malformed(7),  # type: ignore[arg-type]
    ):
        with pytest.raises(tandem.InvalidArgument):
            call()
