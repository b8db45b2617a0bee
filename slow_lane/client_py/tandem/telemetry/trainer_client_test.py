"""`TrainerClient` with the real daemon: runs, publishing, restarts of the daemon, and misuse.

Length: one daemon, and its helpers, for all of them.
"""

import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

import tandem
from tandem.telemetry import (
    BadSessionToken,
    DaemonError,
    DaemonTimeout,
    DaemonUnreachable,
    Episode,
    Published,
    RunExists,
    RunStatus,
    Step,
    TrainerClient,
    UnknownRun,
    WrongState,
)
from tandem.telemetry.daemon_errors import ERROR_TABLE
from tandem.testing.daemons import Daemon, Gate, await_stopped, is_alive, run_config, running_daemon, wait_until
from tandem.testing.engines import watchdog  # noqa: F401, a fixture


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that the tests leave unchanged."""
    with running_daemon(tmp_path_factory.mktemp("data")) as daemon:
        yield daemon


@pytest.fixture
def client(shared_daemon: Daemon) -> Iterator[TrainerClient]:
    """Connects a client to the shared daemon."""
    with TrainerClient(shared_daemon.address) as client:
        yield client


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Makes a gate for the test's workers."""
    return Gate(tmp_path / "gate")


def _until(client: TrainerClient, run_id: str, *statuses: RunStatus) -> list[RunStatus]:
    seen = []
    with client.watch() as changes:
        for run in changes:
            if run.run_id == run_id:
                seen.append(run.status)
                if run.status in statuses:
                    return seen
    raise AssertionError("the watch ended")


def test_run_from_submission_to_end(client: TrainerClient, gate: Gate) -> None:
    """Submits a mapping, follows the run's state changes, and reads its events as Python values."""
    config = gate.program(
        "step(0, action=[1], observation={'at': 0.5}, ts_unix_ns=1_700_000_000_500_000_000)\n"
        "episode(0, metadata={'env': 3})\n"
        "wait_for('end')"
    )
    submitted = client.submit(config)
    assert len(submitted.run_id) == 26 and len(submitted.digest) == 64
    with client.steps(submitted.run_id) as steps:
        step = next(steps)
        assert step == dataclasses.replace(step, run_id=submitted.run_id, step_index=0, seq_id=1, reward=0.0)
        assert (step.action, step.observation) == ([1], {"at": 0.5})
        assert step.timestamp == datetime.fromtimestamp(1_700_000_000.5, UTC)
        _until(client, submitted.run_id, RunStatus.EXEC)
        gate.open("end")
        assert list(steps) == [] and steps.last_seq == 1
    (episode,) = client.episodes(submitted.run_id)
    assert (episode.total_reward, episode.steps, episode.metadata, episode.seq_id) == (1.5, 3, {"env": 3}, 1)
    assert _until(client, submitted.run_id, RunStatus.TERM)[-1].final
    (run,) = [run for run in client.runs(RunStatus.TERM) if run.run_id == submitted.run_id]
    assert run.digest == submitted.digest and run.failure_reason is None and run.gpu_slots == ()
    assert run.created_at is not None and run.updated_at is not None
    assert run.created_at <= run.updated_at <= datetime.now(UTC)


_PYTHON_ENVIRONMENTS = """
import numpy as np, tandem
from tandem.telemetry import RecordEpisodes
envs = RecordEpisodes(tandem.make_vec("CartPole-v1", 4, backend="python", num_workers=2), steps=True)
envs.reset(seed=0)
while envs.episode_count < 8:
    envs.step(np.ones(4, np.int64))
envs.close()
"""


def test_a_run_of_environments_in_python_has_its_events(client: TrainerClient) -> None:
    """The daemon stores each step and episode of the workers' environments, and the run ends without a process left."""
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run_id = client.submit(run_config(sys.executable, "-c", _PYTHON_ENVIRONMENTS, **variables)).run_id
    steps = list(client.steps(run_id))
    episodes = list(client.episodes(run_id))
    assert len(episodes) >= 8 and {each.metadata["env"] for each in episodes} == {0, 1, 2, 3}
    for episode in episodes:
        own = [each for each in steps if each.episode_index == episode.episode_index]
        assert len(own) == episode.steps and sum(each.reward for each in own) == episode.total_reward
    assert _until(client, run_id, RunStatus.TERM)[-1].final


_AT_THE_LIMITS = """
from tandem.telemetry import EventWriter
from tandem.telemetry.json_lines import MAX_DEPTH
value = 1
for depth in range(1, MAX_DEPTH):
    value = [value]
events = EventWriter()
events.step(episode=0, step_index=0, reward=0.0, observation=value, action="[" * MAX_DEPTH)
events.episode(episode=0, total_reward=0.0, steps=1, metadata={"in": value[0]})
events.episode(episode=0, total_reward=0.0, steps=1, metadata={"episode_index": 2**64 - 1})
events.episode(episode=7, total_reward=0.0, steps=1, metadata={"episode_index": None})
print('{"event_type":"step","episode":0,"step_index":1,"reward":0,"observation":' + "[" * MAX_DEPTH + "1", end="")
print("]" * MAX_DEPTH + "}")
"""


def test_events_at_the_limits_are_stored(client: TrainerClient, shared_daemon: Daemon) -> None:
    """The daemon stores events at the depth limit and refuses deeper ones; metadata may set an episode's number."""
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run_id = client.submit(run_config(sys.executable, "-c", _AT_THE_LIMITS, **variables)).run_id
    (step,) = client.steps(run_id)
    assert step.observation_json == "[" * 63 + "1" + "]" * 63
    assert [episode.episode_index for episode in client.episodes(run_id)] == [0, 2**64 - 1, 7]
    with contextlib.closing(sqlite3.connect(f"file:{shared_daemon.table}?mode=ro", uri=True)) as table:
        ((reason,),) = table.execute("SELECT reason FROM malformed WHERE run_id = ?", (run_id,)).fetchall()
        shown = "SELECT episode_index, printf('%u', episode_index) FROM episodes WHERE run_id = ? AND seq_id = 2"
        assert table.execute(shown, (run_id,)).fetchall() == [(-1, str(2**64 - 1))]  # as in telemetry_queries.md
    assert "at most 64 deep" in reason


def test_json_is_a_configuration_too(client: TrainerClient) -> None:
    """A JSON text is accepted, and so is a run_id; the same submission again is the same run."""
    config = run_config("true")
    first = client.submit(json.dumps(config), run_id="by-name")
    assert first.run_id == "by-name" and client.submit(config, run_id="by-name") == first
    with pytest.raises(RunExists, match="SubmitRun at .*by-name"):
        client.submit(config | {"run_name": "other"}, run_id="by-name")


def test_cancelled_run_has_no_process_left(client: TrainerClient, gate: Gate) -> None:
    """The worker does not exist after `cancel` returns."""
    run_id = client.submit(gate.program("step(0, observation=os.getpid())\nwait_for('ever')")).run_id
    with client.steps(run_id) as steps:
        pid = next(steps).observation
    assert is_alive(pid)
    client.cancel(run_id)
    assert not is_alive(pid)
    assert [run.status for run in client.runs() if run.run_id == run_id] == [RunStatus.TERM]


def _numbered_steps(count: int) -> list[Step]:
    return [
        Step(step_index=number, reward=number / 2, observation_json="[1]", seq_id=number)
        for number in range(1, count + 1)
    ]


def test_worker_publishes_by_grpc(client: TrainerClient, gate: Gate, shared_daemon: Daemon) -> None:
    """The daemon keeps an event with a source number once; it keeps each event without one."""
    run_id = client.submit(gate.program("step(0)\nwait_for('end')")).run_id
    _until(client, run_id, RunStatus.EXEC)
    session = client.register(run_id, "own", worker_kind="test")
    session.heartbeat()
    steps = _numbered_steps(50)
    assert session.publish_steps(steps[:30]) == Published(accepted=30, dropped=0)
    assert session.publish_steps(iter(steps)) == Published(accepted=20, dropped=30)
    bare = Step(reward=-1.0)
    assert session.publish_steps([bare, bare]) == session.publish_steps([bare, bare]) == Published(2, 0)
    when = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
    assert session.publish_episodes([Episode(total_reward=2.5, timestamp=when)]) == Published(1, 0)
    refused: list[tuple[Any, str]] = [
        (7, "expected a Step, found int"),
        (Step(reward="x"), "reward"),  # type: ignore[arg-type]
        (Step(seq_id=-1), "-1"),
        (
            Step(timestamp=datetime(2263, 1, 1, tzinfo=UTC)),
            "timestamp: expected one from 1677-09-22 to 2262-04-11, found 2263",
        ),
        (Step(timestamp=datetime(1677, 1, 1)), "timestamp: .*found 1677"),
        (Step(action_json=b"[1]"), r"action_json: expected no bytes, found b'\[1\]'"),  # type: ignore[arg-type]
    ]
    for wrong, fact in refused:
        with pytest.raises(tandem.InvalidArgument, match=f"PublishRunSteps: .*{fact}"):
            session.publish_steps([wrong])
    no_iterables: list[tuple[Callable[[], object], str]] = [
        (lambda: session.publish_steps(None), "PublishRunSteps: expected an iterable of Step, .*, found None; "),  # type: ignore[arg-type]
        (lambda: session.publish_episodes(Episode()), "PublishRunEpisodes: .* of Episode, .*, found Episode"),  # type: ignore[arg-type]
        (lambda: session.publish_steps([], timeout=-1), "timeout: expected seconds, 0 or more, found -1"),
    ]
    for call, fact in no_iterables:
        with pytest.raises(tandem.InvalidArgument, match=fact):
            call()

    def failing() -> Iterator[Step]:
        yield Step()
        raise RuntimeError("of the caller's own")

    with pytest.raises(RuntimeError, match="of the caller's own"):
        session.publish_steps(failing())
    session.token = "guessed"
    with pytest.raises(BadSessionToken):
        session.publish_steps(steps)
    with pytest.raises(BadSessionToken):
        session.heartbeat()
    gate.open("end")
    published = [step for step in client.steps(run_id) if step.worker_id == "own"]
    assert [step.reward for step in published[:54]] == [step.reward for step in steps] + [-1.0] * 4
    (episode,) = client.episodes(run_id)
    assert (episode.worker_id, episode.timestamp) == ("own", when)
    _until(client, run_id, RunStatus.TERM)
    with pytest.raises(WrongState):
        client.register(run_id, "late")


def _interrupted(steps: list[Step], number: int, interrupt: Callable[[], None]) -> Iterator[Step]:
    """Calls `interrupt` after the step with the given number."""
    for step in steps:
        yield step
        if step.seq_id == number:
            interrupt()


def _until_reachable(client: TrainerClient) -> None:
    while True:
        with contextlib.suppress(DaemonUnreachable):
            client.health()
            return
        time.sleep(0.01)


def test_failed_events_are_published_again_to_the_next_daemon(tmp_path: Path, gate: Gate) -> None:
    """The daemon is killed three times during a publish call; afterwards each event is stored exactly once."""
    with running_daemon(tmp_path / "data") as daemon, TrainerClient(daemon.address) as client:
        run_id = client.submit(gate.program("step(0)\nwait_for('end')")).run_id
        _until(client, run_id, RunStatus.EXEC)
        steps = _numbered_steps(4000)
        session = client.register(run_id, "own")
        for before in (0, 1000, 2000):
            last = before + 300 + before // 10

            def kill(rows: int = before + 1) -> None:  # the earlier rows, and the worker's own step
                with client.steps(run_id, since_seq=rows) as kept:
                    next(kept)
                daemon.kill()

            with pytest.raises(DaemonUnreachable):
                session.publish_steps(_interrupted(steps[: before + 1000], last, kill))
            daemon.start()
            _until_reachable(client)
            with pytest.raises((WrongState, BadSessionToken)):
                session.publish_steps(steps)
            session = client.register(run_id, "own")
            again = session.publish_steps(steps[: before + 1000])
            assert again.accepted + again.dropped == before + 1000
            assert before < again.dropped <= last
        assert session.publish_steps(steps) == Published(accepted=1000, dropped=3000)
        gate.open("end")
        published = [step for step in client.steps(run_id) if step.worker_id == "own"]
        assert [(step.step_index, step.reward) for step in published] == [(s.step_index, s.reward) for s in steps]


def test_failed_events_are_published_again_to_the_same_daemon(tmp_path: Path, gate: Gate) -> None:
    """The daemon was stopped by SIGSTOP; the same session publishes the rest, and each event is stored once."""
    with running_daemon(tmp_path / "data") as daemon, TrainerClient(daemon.address) as client:
        run_id = client.submit(gate.program("step(0)\nwait_for('end')")).run_id
        _until(client, run_id, RunStatus.EXEC)
        steps = _numbered_steps(1000)
        session = client.register(run_id, "own")

        def stop() -> None:
            with client.steps(run_id, since_seq=1) as kept:
                next(kept)
            os.kill(daemon.pid, signal.SIGSTOP)
            await_stopped(daemon.pid)

        with pytest.raises(DaemonTimeout):
            session.publish_steps(_interrupted(steps, 500, stop), timeout=5.0)
        os.kill(daemon.pid, signal.SIGCONT)
        again = session.publish_steps(steps)
        assert again.accepted + again.dropped == 1000 and again.dropped > 0
        gate.open("end")
        published = [step for step in client.steps(run_id) if step.worker_id == "own"]
        assert [(step.step_index, step.reward) for step in published] == [(s.step_index, s.reward) for s in steps]


def test_control_pauses_a_run_and_grants_steps(client: TrainerClient, gate: Gate) -> None:
    """`grant` and `limit` lead to pause and resume events; after `close` the iteration ends."""
    program = "step(0)\nwait_for('go')\nfor index in range(1, 500): step(index)\nwait_for('end')"
    run_id = client.submit(gate.program(program)).run_id
    _until(client, run_id, RunStatus.EXEC)
    with client.control() as control:
        received = iter(control)
        control.grant(run_id, 1)
        seen: list[int] = []
        steps = client.steps(run_id)
        reader = threading.Thread(target=lambda: seen.extend(step.seq_id for step in steps))
        reader.start()
        gate.open("go")
        event = next(received)
        assert (event.run_id, event.kind, event.value) == (run_id, "pause", 1)
        control.grant(run_id, 1000)
        assert next(received).kind == "resume"
        control.pause(run_id)
        _until(client, run_id, RunStatus.PAUSE)
        control.limit(run_id, 0)
        control.resume(run_id)
        _until(client, run_id, RunStatus.EXEC)
        gate.open("end")
        reader.join()
        assert seen == list(range(1, 501))
        with pytest.raises(tandem.InvalidArgument, match="ControlStream"):
            control.grant(run_id, -1)
        control.close()
        assert list(received) == []
    control.close()
    with client.control() as control:
        control.pause("missing")
        with pytest.raises(UnknownRun, match="missing"):
            next(iter(control))
        with pytest.raises(UnknownRun, match="missing"):
            control.grant(run_id, 1)  # the stream has ended


def test_a_grant_counts_when_it_has_returned(client: TrainerClient, gate: Gate) -> None:
    """Also the second one: a subscription that begins then gets the credits' steps only, not all that there are."""
    run_id = client.submit(gate.program("for index in range(1000): step(index)")).run_id
    _until(client, run_id, RunStatus.TERM)
    for _ in range(20):
        # Credits are counted by connection.
        with TrainerClient(client.target) as own, own.control() as control:
            control.grant(run_id, 1)
            control.grant(run_id, 1)
            seen: list[int] = []
            reader = threading.Thread(target=_collect, args=(own.steps(run_id), seen))
            reader.start()
            wait_until(lambda: len(seen) >= 202, "the credits' steps")  # noqa: B023, called here
            assert next(iter(control)).kind == "pause" and len(seen) == 202 and reader.is_alive()
            assert client.describe(run_id).runs[0].starved_watchers == 1
            control.grant(run_id, 10_000)
            assert client.describe(run_id).runs[0].starved_watchers == 0
            reader.join()
            assert seen == list(range(1, 1001))


def _collect(steps: Iterator[Step], seen: list[int]) -> None:
    seen.extend(step.seq_id for step in steps)


def test_health_is_of_the_daemon(client: TrainerClient, shared_daemon: Daemon) -> None:
    """The health has the daemon's pid and address."""
    health = client.health()
    assert health.pid == shared_daemon.pid and health.healthy and shared_daemon.address in health.listen_address
    assert health.started_at <= datetime.now(UTC)


_COUNTING = "for index in range(3000):\n    step(index)\n    index == 1000 and wait_for('more')\nwait_for('end')"


def test_subscription_continues_with_the_next_daemon(tmp_path: Path, gate: Gate) -> None:
    """The daemon is killed twice while it streams; each step and state change arrives once and in order."""
    with running_daemon(tmp_path / "data") as daemon, TrainerClient(daemon.address) as client:
        run_id = client.submit(gate.program(_COUNTING)).run_id
        steps, episodes, changes = client.steps(run_id), client.episodes(run_id), client.watch()
        seen = [next(steps).seq_id for _ in range(500)]
        statuses = [next(changes).status]
        daemon.kill()
        daemon.start()
        seen += [next(steps).seq_id for _ in range(500)]
        daemon.kill()
        gate.open("more")
        reader = threading.Thread(target=lambda: seen.extend(step.seq_id for step in steps))
        reader.start()
        ended: list[Episode] = []
        other = threading.Thread(target=lambda: ended.extend(episodes))
        other.start()
        daemon.start()
        gate.open("end")
        for thread in (reader, other):
            thread.join()
        assert seen == list(range(1, 3001)) and ended == []
        while not statuses[-1].final:
            statuses.append(next(changes).status)
        assert statuses[-1] is RunStatus.TERM and statuses == sorted(statuses)
        changes.close()


def test_subscription_fails_if_the_daemon_does_not_return(tmp_path: Path, gate: Gate) -> None:
    """The error comes after reconnect_secs."""
    with running_daemon(tmp_path / "data") as daemon:
        with TrainerClient(daemon.address, reconnect_secs=0.3) as client:
            run_id = client.submit(gate.program("step(0)\nwait_for('end')")).run_id
            steps = client.steps(run_id)
            next(steps)
            daemon.kill()
            with pytest.raises(DaemonUnreachable, match=r"within 0\.3 s"):
                next(steps)
        daemon.start()


def test_subscription_can_be_closed_from_another_thread(client: TrainerClient, gate: Gate) -> None:
    """The iteration ends; if the client is closed instead, it raises ClientClosed."""
    run_id = client.submit(gate.program("step(0)\nwait_for('ever')")).run_id
    steps = client.steps(run_id)
    next(steps)
    rest: list[Step] = []
    reader = threading.Thread(target=lambda: rest.extend(steps))
    reader.start()
    steps.close()
    steps.close()
    reader.join()
    assert rest == [] and list(steps) == []
    other = TrainerClient(client.target)
    pending = other.steps(run_id)
    next(pending)
    other.close()
    other.close()
    with pytest.raises(tandem.ClientClosed):
        next(pending)
    with pytest.raises(tandem.ClientClosed):
        other.runs()
    client.cancel(run_id)


def test_unknown_run_is_a_lookup_error(client: TrainerClient) -> None:
    """Each call with an unknown run_id raises UnknownRun, which is also a LookupError."""
    calls: list[Callable[[], object]] = [
        lambda: client.cancel("missing"),
        lambda: client.heartbeat("missing"),
        lambda: client.register("missing", "w"),
        lambda: next(client.steps("missing")),
        lambda: next(client.episodes("missing", since_seq=7)),
    ]
    for call in calls:
        with pytest.raises(UnknownRun, match="missing") as caught:
            call()
        assert isinstance(caught.value, LookupError)


def test_call_that_takes_too_long_is_a_timeout(client: TrainerClient, gate: Gate) -> None:
    """DaemonTimeout is also a TimeoutError; the cancellation, which waits 5 s for the worker, continues."""
    program = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nstep(0)\nwait_for('ever')"
    run_id = client.submit(gate.program(program)).run_id
    next(client.steps(run_id))
    with pytest.raises(DaemonTimeout, match="CancelRun") as caught:
        client.cancel(run_id, timeout=3)
    assert isinstance(caught.value, TimeoutError)
    _until(client, run_id, RunStatus.TERM)


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_status_has_its_class(code: Any) -> None:
    """Each status code of gRPC maps to one of Tandem's errors."""
    assert issubclass(ERROR_TABLE[code.name], tandem.TandemError)


def test_table_has_no_other_status() -> None:
    """The table has exactly gRPC's codes, and each error class of the module."""
    codes = {code.name for code in grpc.StatusCode} - {"OK"}
    assert ERROR_TABLE.keys() == codes
    classes = {each for each in vars(tandem.telemetry).values() if isinstance(each, type)}
    errors = {each for each in classes if issubclass(each, DaemonError)}
    assert errors <= set(ERROR_TABLE.values())


@pytest.mark.parametrize("missing", ["grpc", "google.protobuf"])
def test_missing_package_is_named(missing: str) -> None:
    """The error has the command that installs it; EventWriter works without the package."""
    program = f"""
import sys
sys.modules[{missing!r}] = None
import tandem.telemetry
tandem.telemetry.EventWriter().lifecycle("a")
try:
    tandem.telemetry.TrainerClient()
except ModuleNotFoundError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    completed = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "pip install grpcio protobuf" in completed.stdout, completed.stderr
