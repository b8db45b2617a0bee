"""A client generated only from the documented field table makes every call of the daemon."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import tests.interop.grpc_health_pb2 as health
import tests.interop.grpc_health_pb2_grpc as health_grpc
import tests.interop.grpc_reflection_pb2 as reflection
import tests.interop.grpc_reflection_pb2_grpc as reflection_grpc
import tests.interop.trainer_table_pb2 as table
import tests.interop.trainer_table_pb2_grpc as table_grpc
from google.protobuf import descriptor_pb2

from tandem.telemetry import TrainerClient
from tandem.testing.daemons import (
    Daemon,
    Gate,
    await_stopped,
    is_alive,
    process_state,
    run_config,
    running_daemon,
    wait_until,
)
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.interop.trainer_calls import Controls, Reader, Refused, until
from tools.testing import pytest_main

_ULID = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")
_ORDER = [table.RUN_STATUS_INIT, table.RUN_STATUS_HSHK, table.RUN_STATUS_RDY, table.RUN_STATUS_EXEC]
_OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Starts one daemon for all tests; each test has its own runs."""
    with running_daemon(tmp_path_factory.mktemp("data")) as daemon:
        yield daemon


@pytest.fixture
def channel(daemon: Daemon) -> Iterator[Any]:
    """Opens a connection for the test."""
    with grpc.insecure_channel(daemon.address, options=_OPTIONS) as channel:
        yield channel


@pytest.fixture
def trainer(channel: Any) -> Any:
    """Makes the generated client."""
    return table_grpc.TrainerServiceStub(channel)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Makes a gate for the test's workers."""
    return Gate(tmp_path / "gate")


def _submit(trainer: Any, config: dict[str, Any], run_id: str = "") -> str:
    submitted: str = trainer.SubmitRun(table.Submit(run_id=run_id, config_json=json.dumps(config))).run_id
    return submitted


def _record(trainer: Any, run_id: str) -> Any:
    (record,) = [record for record in trainer.ListRuns(table.List()).runs if record.run_id == run_id]
    return record


def _waiting(trainer: Any, gate: Gate) -> str:
    """Starts a run whose worker prints its pid, and waits for the gate "end"."""
    run_id = _submit(trainer, gate.program("step(0, observation=os.getpid()); wait_for('end')"))
    until(trainer, run_id, table.RUN_STATUS_EXEC)
    return run_id


def test_run_gets_a_run_id_and_all_its_states_in_order(trainer: Any, gate: Gate) -> None:
    """Each state change has a greater number than the one before; afterwards the run is listed."""
    submitted = trainer.SubmitRun(table.Submit(config_json=json.dumps(gate.program("step(0); wait_for('end')"))))
    assert _ULID.fullmatch(submitted.run_id) and re.fullmatch("[0-9a-f]{64}", submitted.digest)
    seen = until(trainer, submitted.run_id, table.RUN_STATUS_EXEC)
    gate.open("end")
    seen += until(trainer, submitted.run_id, table.RUN_STATUS_TERM, table.RUN_STATUS_FAULT)
    statuses = [record.status for record in seen]
    assert statuses[-1] == table.RUN_STATUS_TERM
    assert sorted(statuses) == statuses and set(statuses) <= {*_ORDER, table.RUN_STATUS_TERM}
    numbers = [record.seq_id for record in seen]
    assert sorted(numbers) == numbers and numbers[0] > 0
    last = _record(trainer, submitted.run_id)
    assert last.status == table.RUN_STATUS_TERM and last.digest == submitted.digest and last.seq_id == numbers[-1]
    assert last.created_at.ToNanoseconds() <= last.updated_at.ToNanoseconds() <= time.time_ns()
    assert not last.HasField("failure_reason")


def test_watch_since_a_number_sends_all_later_changes(trainer: Any, gate: Gate) -> None:
    """All states after that number are sent, although the run has already ended."""
    before = max((record.seq_id for record in trainer.ListRuns(table.List()).runs), default=0)
    first = _submit(trainer, gate.program("step(0)"))
    until(trainer, first, table.RUN_STATUS_TERM)
    changes = []
    call = trainer.WatchRuns(table.Watch(since_seq=max(before, 1)))
    for record in call:
        changes.append(record)
        if record.run_id == first and record.status == table.RUN_STATUS_TERM:
            call.cancel()
            break
    numbers = [record.seq_id for record in changes]
    assert numbers == sorted(set(numbers)) and numbers[0] > max(before, 1)
    own = [record.status for record in changes if record.run_id == first]
    assert own == [status for status in [*_ORDER, table.RUN_STATUS_TERM] if status in own]
    assert {table.RUN_STATUS_HSHK, table.RUN_STATUS_RDY, table.RUN_STATUS_EXEC} <= set(own)
    filtered = trainer.WatchRuns(table.Watch(since_seq=1, status_filter=[table.RUN_STATUS_TERM]))
    assert next(filtered).status == table.RUN_STATUS_TERM
    filtered.cancel()


def test_watch_without_a_number_sends_runs_in_the_order_of_their_numbers(trainer: Any, gate: Gate) -> None:
    """So a client can continue after the last number it received: a run that began earlier may have changed later."""
    early = _waiting(trainer, gate)
    late = _submit(trainer, run_config("true"))
    until(trainer, late, table.RUN_STATUS_TERM)
    gate.open("end")
    until(trainer, early, table.RUN_STATUS_TERM)
    call = trainer.WatchRuns(table.Watch())
    numbers = [next(call).seq_id for _ in trainer.ListRuns(table.List()).runs]
    call.cancel()
    assert numbers == sorted(numbers)


def test_failed_run_shows_the_reason(trainer: Any) -> None:
    """The reason has the exit code, and the end of the worker's stderr."""
    run_id = _submit(trainer, run_config(sys.executable, "-c", "import sys; sys.exit('no such algorithm')"))
    until(trainer, run_id, table.RUN_STATUS_FAULT)
    reason = _record(trainer, run_id).failure_reason
    assert "1" in reason and "no such algorithm" in reason


def test_same_configuration_under_the_same_name_is_the_same_run(trainer: Any, tmp_path: Path) -> None:
    """The run is started once, also after its end. Without the run_id the same configuration is a new run."""
    source = f"open({str(tmp_path / 'starts')!r}, 'a').write('x')"
    config = run_config(sys.executable, "-c", source)
    request = table.Submit(run_id="again", config_json=json.dumps(config))
    first = trainer.SubmitRun(request)
    assert first.run_id == "again"
    assert trainer.SubmitRun(request) == first
    until(trainer, "again", table.RUN_STATUS_TERM)
    # The same configuration with other whitespace.
    assert trainer.SubmitRun(table.Submit(run_id="again", config_json=json.dumps(config, indent=2))) == first
    with Refused(grpc.StatusCode.ALREADY_EXISTS, "again"):
        _submit(trainer, config | {"run_name": "other"}, "again")
    other = trainer.SubmitRun(table.Submit(config_json=request.config_json))
    assert other.digest == first.digest and other.run_id != "again"
    until(trainer, other.run_id, table.RUN_STATUS_TERM)
    assert (tmp_path / "starts").read_text() == "xx"


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"entry_point": None}, ["entry_point"]),
        ({"arguments": ["-c", 7]}, ["arguments[1]"]),
        ({"environment": {"A": 1}}, ["environment.A"]),
        ({"resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": -1}}}, ["resources.gpus.requested", "-1"]),
    ],
)
def test_invalid_configuration_is_refused(change: dict[str, Any], facts: list[str], trainer: Any) -> None:
    """The error names the invalid field."""
    with Refused(grpc.StatusCode.INVALID_ARGUMENT, *facts):
        _submit(trainer, run_config("true") | change)


def test_configuration_in_invalid_json_is_refused(trainer: Any) -> None:
    """The error is INVALID_ARGUMENT, also for JSON that is no object."""
    for text in ("", "{", "[1]"):
        with Refused(grpc.StatusCode.INVALID_ARGUMENT):
            trainer.SubmitRun(table.Submit(config_json=text))


def test_unknown_run_is_not_found(trainer: Any) -> None:
    """Each call with an unknown run_id is NOT_FOUND."""
    calls = [
        lambda: trainer.CancelRun(table.OfRun(run_id="missing")),
        lambda: trainer.Heartbeat(table.OfRun(run_id="missing")),
        lambda: trainer.RegisterWorker(table.Register(run_id="missing", worker_id="w")),
        lambda: list(trainer.StreamRunSteps(table.Since(run_id="missing"))),
        lambda: list(trainer.StreamRunEpisodes(table.Since(run_id="missing"))),
        lambda: trainer.PublishRunSteps(iter([table.RunStep(run_id="missing")])),
        lambda: list(trainer.ControlStream(iter([table.ControlEvent(run_id="missing", grant_steps=1)]))),
    ]
    for call in calls:
        with Refused(grpc.StatusCode.NOT_FOUND, "missing"):
            call()  # type: ignore[no-untyped-call]  # of generated code


def test_cancelled_run_has_no_process_left(trainer: Any, gate: Gate) -> None:
    """Holds when CancelRun answers; a second CancelRun has no effect."""
    run_id = _submit(
        trainer,
        gate.program("""
import subprocess
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
step(0, observation=[os.getpid(), child.pid])
child.wait()
"""),
    )
    pids = json.loads(next(trainer.StreamRunSteps(table.Since(run_id=run_id))).observation_json)
    assert all(is_alive(pid) for pid in pids)
    trainer.CancelRun(table.OfRun(run_id=run_id))
    assert not any(is_alive(pid) for pid in pids)
    assert until(trainer, run_id, table.RUN_STATUS_TERM)
    trainer.CancelRun(table.OfRun(run_id=run_id))
    assert _record(trainer, run_id).status == table.RUN_STATUS_TERM


def test_list_can_be_filtered(trainer: Any, gate: Gate) -> None:
    """The filter has one or more states."""
    live = _waiting(trainer, gate)
    done = _submit(trainer, run_config("true"))
    until(trainer, done, table.RUN_STATUS_TERM)

    def listed(*statuses: int) -> set[str]:
        return {record.run_id for record in trainer.ListRuns(table.List(status_filter=statuses)).runs}

    assert live in listed(table.RUN_STATUS_EXEC) and done not in listed(table.RUN_STATUS_EXEC)
    assert {live, done} <= listed(table.RUN_STATUS_TERM, table.RUN_STATUS_EXEC) <= listed()
    trainer.CancelRun(table.OfRun(run_id=live))


_EVENTS = """
for index in range(100):
    step(index, action=[index], observation={"at": index}, terminated=index == 99, worker_id="w-1", agent_id="left",
         policy_label="ppo", backend="mujoco", frame_ref="f.png", payload_version=3, episode_seed=7,
         render_payload={"grid": []}, ts_unix_ns=1_700_000_000_123_456_789)
    if index % 25 == 24:
        episode(index // 25, truncated=True, metadata={"index": index})
wait_for("end")
"""


def test_streams_send_events_after_a_number(trainer: Any, gate: Gate) -> None:
    """Each event comes once, in order, with all fields, from a running or ended run; then the stream ends."""
    run_id = _submit(trainer, gate.program(_EVENTS))
    live = trainer.StreamRunSteps(table.Since(run_id=run_id))
    steps = [next(live) for _ in range(100)]
    gate.open("end")
    assert list(live) == []
    assert [step.seq_id for step in steps] == list(range(1, 101))
    assert [step.step_index for step in steps] == list(range(100))
    last = steps[-1]
    assert (last.run_id, last.worker_id, last.agent_id) == (run_id, "w-1", "left")
    assert (json.loads(last.action_json), json.loads(last.observation_json)) == ([99], {"at": 99})
    assert (last.reward, last.terminated, last.truncated) == (49.5, True, False)
    assert (last.policy_label, last.backend, last.frame_ref) == ("ppo", "mujoco", "f.png")
    assert (last.payload_version, last.episode_seed, json.loads(last.render_payload_json)) == (3, 7, {"grid": []})
    assert last.timestamp.ToNanoseconds() == 1_700_000_000_123_456_789

    episodes = list(trainer.StreamRunEpisodes(table.Since(run_id=run_id)))
    assert [episode.seq_id for episode in episodes] == [1, 2, 3, 4]
    assert [json.loads(episode.metadata_json)["index"] for episode in episodes] == [24, 49, 74, 99]
    assert (episodes[0].total_reward, episodes[0].steps, episodes[0].truncated) == (1.5, 3, True)

    for since in (0, 1, 60, 99, 100, 10**6):
        again = list(trainer.StreamRunSteps(table.Since(run_id=run_id, since_seq=since)))
        assert again == steps[since:]
    assert list(trainer.StreamRunEpisodes(table.Since(run_id=run_id, since_seq=3))) == episodes[3:]


_GATED = """
step(0)
wait_for("go")
for index in range(1, 1000):
    step(index)
"""


@pytest.mark.parametrize("shared", ["connection", "watcher-id"])
def test_credits_limit_a_watcher_and_lose_no_step(shared: str, trainer: Any, gate: Gate, daemon: Daemon) -> None:
    """A watcher has 200 credits plus the granted ones; at 10 it is STARVED. Other watchers have no limit."""
    run_id = _submit(trainer, gate.program(_GATED))
    until(trainer, run_id, table.RUN_STATUS_EXEC)
    metadata = [("watcher-id", "gui-1")] if shared == "watcher-id" else None
    with grpc.insecure_channel(daemon.address, options=_OPTIONS) as other:
        elsewhere = table_grpc.TrainerServiceStub(other)
        controls = Controls(elsewhere if shared == "watcher-id" else trainer, run_id, metadata=metadata)
        controls.send(grant_steps=1)
        controls.call.initial_metadata()  # the daemon has the grant
        watcher = Reader(trainer.StreamRunSteps(table.Since(run_id=run_id), metadata=metadata))
        watcher.wait_for(1)
        gate.open("go")
        assert controls.receive() == ("pause", True)
        assert [step.seq_id for step in elsewhere.StreamRunSteps(table.Since(run_id=run_id))] == list(range(1, 1001))
        assert len(watcher.wait_for(201)) == 201
        controls.send(grant_steps=9)
        assert len(watcher.wait_for(210)) == 210
        controls.send(grant_steps=10_000)
        assert controls.receive() == ("resume", True)
        assert [step.seq_id for step in watcher.wait_for_end()] == list(range(1, 1001))
        controls.close()


def test_rate_of_a_watcher_can_be_limited(trainer: Any, gate: Gate) -> None:
    """80 steps at 40 a second take at least a second, after the first 40; no step is lost."""
    run_id = _submit(trainer, gate.program("step(0)\nwait_for('go')\nfor index in range(1, 80): step(index)"))
    until(trainer, run_id, table.RUN_STATUS_EXEC)
    controls = Controls(trainer, run_id)
    controls.send(max_rate_hz=40)
    controls.call.initial_metadata()  # the limit holds
    steps = trainer.StreamRunSteps(table.Since(run_id=run_id))
    next(steps)
    begin = time.monotonic()
    gate.open("go")
    assert [step.seq_id for step in steps] == list(range(2, 81))
    assert time.monotonic() - begin >= 0.9
    controls.close()


def test_run_can_be_paused_and_resumed(trainer: Any, gate: Gate) -> None:
    """The run's processes are stopped meanwhile, and its state is PAUSE."""
    run_id = _waiting(trainer, gate)
    pid = int(next(trainer.StreamRunSteps(table.Since(run_id=run_id))).observation_json)
    controls = Controls(trainer, run_id)
    controls.send(pause=True)
    until(trainer, run_id, table.RUN_STATUS_PAUSE)
    await_stopped(pid)
    controls.send(resume=True)
    until(trainer, run_id, table.RUN_STATUS_EXEC)
    wait_until(lambda: process_state(pid) != "T", "the worker to go on")
    controls.close()
    assert list(controls.call) == []
    gate.open("end")
    until(trainer, run_id, table.RUN_STATUS_TERM)
    late = Controls(trainer, run_id)
    late.send(pause=True)
    with Refused(grpc.StatusCode.FAILED_PRECONDITION):
        late.receive()


def test_worker_may_publish_by_itself(trainer: Any, gate: Gate) -> None:
    """RegisterWorker comes first. Numbered steps are stored once; unnumbered ones are stored each time."""
    run_id = _waiting(trainer, gate)
    steps = [table.RunStep(run_id=run_id, worker_id="own", step_index=n, reward=n, seq_id=n) for n in range(1, 101)]
    with Refused(grpc.StatusCode.FAILED_PRECONDITION, "RegisterWorker"):
        trainer.PublishRunSteps(iter(steps))
    registered = trainer.RegisterWorker(
        table.Register(run_id=run_id, worker_id="own", worker_kind="test", proto_version="MOSAIC/1.0", schema_version=1)
    )
    assert registered.accepted_version and registered.session_token
    right = [("session-token", registered.session_token)]
    wrong = [("session-token", "guessed")]
    with Refused(grpc.StatusCode.UNAUTHENTICATED, "session-token"):
        trainer.PublishRunSteps(iter(steps), metadata=wrong)
    with Refused(grpc.StatusCode.UNAUTHENTICATED, "session-token"):
        trainer.Heartbeat(table.OfRun(run_id=run_id), metadata=wrong)

    assert trainer.PublishRunSteps(iter(steps[:60]), metadata=right) == table.Published(accepted=60)
    assert trainer.PublishRunSteps(iter(steps), metadata=right) == table.Published(accepted=40, dropped=60)
    unnumbered = [table.RunEpisode(run_id=run_id, worker_id="own", total_reward=1)] * 2
    assert trainer.PublishRunEpisodes(iter(unnumbered)) == table.Published(accepted=2)
    assert trainer.PublishRunSteps(iter([])) == table.Published()

    before = time.time_ns()
    trainer.Heartbeat(table.OfRun(run_id=run_id), metadata=right)
    assert _record(trainer, run_id).last_heartbeat.ToNanoseconds() >= before - 1_000_000_000

    with Refused(grpc.StatusCode.INVALID_ARGUMENT, run_id, "other"):
        trainer.PublishRunSteps(iter([steps[0], table.RunStep(run_id="other")]), metadata=right)
    with Refused(grpc.StatusCode.INVALID_ARGUMENT, "run_id"):
        trainer.PublishRunSteps(iter([table.RunStep()]), metadata=right)

    gate.open("end")
    until(trainer, run_id, table.RUN_STATUS_TERM)
    kept = list(trainer.StreamRunSteps(table.Since(run_id=run_id)))
    assert [step.seq_id for step in kept] == list(range(1, 102))
    assert [step.reward for step in kept if step.worker_id == "own"] == list(range(1, 101))
    assert len(list(trainer.StreamRunEpisodes(table.Since(run_id=run_id)))) == 2
    with Refused(grpc.StatusCode.FAILED_PRECONDITION):
        trainer.PublishRunSteps(iter(steps), metadata=right)


def test_message_of_many_megabytes_comes_through(trainer: Any, gate: Gate) -> None:
    """The limit is 64 MiB, in both directions."""
    run_id = _waiting(trainer, gate)
    trainer.RegisterWorker(table.Register(run_id=run_id, worker_id="own"))
    picture = json.dumps("x" * (40 << 20))
    step = table.RunStep(run_id=run_id, worker_id="own", seq_id=1, observation_json=picture)
    assert trainer.PublishRunSteps(iter([step])).accepted == 1
    trainer.CancelRun(table.OfRun(run_id=run_id))
    (kept,) = trainer.StreamRunSteps(table.Since(run_id=run_id, since_seq=1))
    assert kept.observation_json == picture


def test_health_names_the_daemon(trainer: Any, channel: Any, daemon: Daemon) -> None:
    """GetHealth has the pid and address; gRPC's standard health service answers as well."""
    answer = trainer.GetHealth(table.Nothing())
    assert answer.pid == daemon.pid and answer.healthy and daemon.address in answer.listen_address
    assert 0 < answer.started_at.ToNanoseconds() <= time.time_ns()
    standard = health_grpc.HealthStub(channel)
    for service in ("", "gymgui.trainer.TrainerService"):
        assert standard.Check(health.Asked(service=service)).status == 1
    with Refused(grpc.StatusCode.NOT_FOUND):
        standard.Check(health.Asked(service="missing.Service"))


def test_reflection_describes_the_table(channel: Any) -> None:
    """Reflection has every method with its kind, and the fields of every message in the table."""
    asked = [
        reflection.Asked(list_services=""),
        reflection.Asked(file_containing_symbol="gymgui.trainer.TrainerService"),
    ]
    services, files = reflection_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter(asked))
    names = {service.name for service in services.services.service}
    assert {"gymgui.trainer.TrainerService", "grpc.health.v1.Health"} <= names
    described = [descriptor_pb2.FileDescriptorProto.FromString(file) for file in files.files.file]
    (theirs,) = [file for file in described if file.package == "gymgui.trainer"]
    ours = descriptor_pb2.FileDescriptorProto()
    table.DESCRIPTOR.CopyToProto(ours)

    def methods(file: Any) -> dict[str, tuple[bool, bool]]:
        return {each.name: (each.client_streaming, each.server_streaming) for each in file.service[0].method}

    def fields(file: Any, name: str) -> set[tuple[Any, ...]]:
        (message,) = [message for message in file.message_type if message.name == name]
        return {(each.name, each.number, each.type, each.label, each.proto3_optional) for each in message.field}

    assert methods(theirs) == methods(ours)
    for name in ("RunRecord", "RunStep", "RunEpisode", "ControlEvent"):
        assert fields(theirs, name) == fields(ours, name)
    (their_status,) = [enum for enum in theirs.enum_type if enum.name == "RunStatus"]
    assert [(value.name, value.number) for value in their_status.value] == table.RunStatus.items()


def test_own_client_lives_beside_a_generated_one(trainer: Any, daemon: Daemon) -> None:
    """Both clients have a description of the same service in one process."""
    with TrainerClient(daemon.address) as client:
        listed = trainer.ListRuns(table.List()).runs
        assert [run.run_id for run in client.runs()] == [record.run_id for record in listed]


if __name__ == "__main__":
    pytest_main.run(__file__)
