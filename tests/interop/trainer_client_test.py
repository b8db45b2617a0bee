"""A client generated only from the documented field table makes every call of the daemon."""

import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
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
from tandem.testing.daemons import Daemon, Gate, run_config, running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

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


def _submit(trainer: Any, config: dict[str, Any]) -> str:
    submitted: str = trainer.SubmitRun(table.Submit(config_json=json.dumps(config))).run_id
    return submitted


def _until(trainer: Any, run_id: str, status: int) -> list[Any]:
    """Watches a run until it has the given state, and returns its changes."""
    seen = []
    call = trainer.WatchRuns(table.Watch())
    for record in call:
        if record.run_id == run_id:
            seen.append(record)
            if record.status == status:
                call.cancel()
                return seen
    raise AssertionError("WatchRuns ended")


def _code(call: Callable[[], Any]) -> Any:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code()


def test_run_has_all_its_states_in_order(trainer: Any, gate: Gate) -> None:
    """Each state change has a greater number than the one before; a watch that begins later has them, too."""
    before = max((record.seq_id for record in trainer.ListRuns(table.List()).runs), default=1)
    config = gate.program("step(0); wait_for('end')")
    submitted = trainer.SubmitRun(table.Submit(config_json=json.dumps(config)))
    assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", submitted.run_id)
    assert re.fullmatch("[0-9a-f]{64}", submitted.digest)
    seen = _until(trainer, submitted.run_id, table.RUN_STATUS_EXEC)
    gate.open("end")
    seen += _until(trainer, submitted.run_id, table.RUN_STATUS_TERM)
    assert [record.status for record in seen] == sorted(record.status for record in seen)
    numbers = [record.seq_id for record in seen]
    assert sorted(numbers) == numbers and numbers[0] > 0
    (last,) = trainer.ListRuns(table.List(status_filter=[table.RUN_STATUS_TERM])).runs[-1:]
    assert (last.run_id, last.digest, last.seq_id) == (submitted.run_id, submitted.digest, numbers[-1])
    assert last.created_at.ToNanoseconds() <= last.updated_at.ToNanoseconds() <= time.time_ns()
    assert not last.HasField("failure_reason")
    assert submitted.run_id not in [
        record.run_id for record in trainer.ListRuns(table.List(status_filter=[table.RUN_STATUS_EXEC])).runs
    ]
    call = trainer.WatchRuns(table.Watch(since_seq=before))
    changes = list(itertools.takewhile(lambda record: record.seq_id < numbers[-1], call))
    call.cancel()
    own = [record.status for record in changes if record.run_id == submitted.run_id]
    assert own[-3:] == [table.RUN_STATUS_HSHK, table.RUN_STATUS_RDY, table.RUN_STATUS_EXEC]
    filtered = trainer.WatchRuns(table.Watch(since_seq=1, status_filter=[table.RUN_STATUS_TERM]))
    assert next(filtered).status == table.RUN_STATUS_TERM
    filtered.cancel()


def test_watch_without_a_number_sends_runs_in_the_order_of_their_numbers(trainer: Any, gate: Gate) -> None:
    """So a client can continue after the last number it received: a run that began earlier may have changed later."""
    early = _submit(trainer, gate.program("step(0); wait_for('end')"))
    _until(trainer, early, table.RUN_STATUS_EXEC)
    _until(trainer, _submit(trainer, run_config("true")), table.RUN_STATUS_TERM)
    gate.open("end")
    _until(trainer, early, table.RUN_STATUS_TERM)
    call = trainer.WatchRuns(table.Watch())
    numbers = [next(call).seq_id for _ in trainer.ListRuns(table.List()).runs]
    call.cancel()
    assert numbers == sorted(numbers)


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


def _control(trainer: Any, run_id: str, close: threading.Event, metadata: Any = None, **event: Any) -> Any:
    """Sends an event by ControlStream, and returns when the daemon has it. The stream is open until `close` is set."""

    def events() -> Iterator[Any]:
        yield table.ControlEvent(run_id=run_id, **event)
        close.wait()

    call = trainer.ControlStream(events(), metadata=metadata)
    call.initial_metadata()
    return call


def test_credits_hold_for_a_watcher_id_on_any_connection(trainer: Any, gate: Gate, daemon: Daemon) -> None:
    """A watcher has 200 credits plus the granted ones; other watchers have no limit."""
    run_id = _submit(trainer, gate.program("for index in range(1000): step(index)"))
    _until(trainer, run_id, table.RUN_STATUS_TERM)
    metadata, close = [("watcher-id", "gui-1")], threading.Event()
    with grpc.insecure_channel(daemon.address, options=_OPTIONS) as other:
        elsewhere = table_grpc.TrainerServiceStub(other)
        control = _control(elsewhere, run_id, close, metadata, grant_steps=1)
        watcher = trainer.StreamRunSteps(table.Since(run_id=run_id), metadata=metadata)
        seen = [next(watcher).seq_id for _ in range(201)]
        event = next(control)
        assert (event.run_id, event.pause) == (run_id, True)
        assert [step.seq_id for step in elsewhere.StreamRunSteps(table.Since(run_id=run_id))] == list(range(1, 1001))
        more = _control(elsewhere, run_id, close, metadata, grant_steps=10_000)
        assert seen + [step.seq_id for step in watcher] == list(range(1, 1001))
        close.set()
        assert [event.resume for event in more] == [True]


def test_rate_of_a_watcher_can_be_limited(trainer: Any, gate: Gate) -> None:
    """80 steps at 40 a second take at least a second, after the first 40; no step is lost."""
    run_id = _submit(trainer, gate.program("for index in range(80): step(index)"))
    _until(trainer, run_id, table.RUN_STATUS_TERM)
    close = threading.Event()
    control = _control(trainer, run_id, close, max_rate_hz=40)
    begin = time.monotonic()
    assert [step.seq_id for step in trainer.StreamRunSteps(table.Since(run_id=run_id))] == list(range(1, 81))
    assert time.monotonic() - begin >= 0.9
    close.set()
    assert list(control) == []


def test_worker_may_publish_by_itself(trainer: Any, gate: Gate) -> None:
    """RegisterWorker comes first, and each event is of the run that the first one names."""
    run_id = _submit(trainer, gate.program("step(0); wait_for('end')"))
    _until(trainer, run_id, table.RUN_STATUS_EXEC)
    steps = [table.RunStep(run_id=run_id, worker_id="own", seq_id=n) for n in (1, 2)]
    assert _code(lambda: trainer.PublishRunSteps(iter(steps))) is grpc.StatusCode.FAILED_PRECONDITION
    token = trainer.RegisterWorker(table.Register(run_id=run_id, worker_id="own")).session_token
    right = [("session-token", token)]
    assert trainer.PublishRunSteps(iter(steps), metadata=right) == table.Published(accepted=2)
    assert trainer.PublishRunSteps(iter([])) == table.Published()
    before = time.time_ns()
    trainer.Heartbeat(table.OfRun(run_id=run_id), metadata=right)
    (record,) = [each for each in trainer.ListRuns(table.List()).runs if each.run_id == run_id]
    assert record.last_heartbeat.ToNanoseconds() >= before - 1_000_000_000
    for wrong in ([steps[0], table.RunStep(run_id="other")], [table.RunStep()]):
        refused = _code(lambda: trainer.PublishRunSteps(iter(wrong), metadata=right))  # noqa: B023, called here
        assert refused is grpc.StatusCode.INVALID_ARGUMENT
    missing = [table.RunStep(run_id="missing")]
    assert _code(lambda: trainer.PublishRunSteps(iter(missing))) is grpc.StatusCode.NOT_FOUND
    gate.open("end")


def test_health_names_the_daemon(trainer: Any, channel: Any, daemon: Daemon) -> None:
    """GetHealth has the pid and address; gRPC's standard health service answers as well."""
    answer = trainer.GetHealth(table.Nothing())
    assert answer.pid == daemon.pid and answer.healthy and daemon.address in answer.listen_address
    assert 0 < answer.started_at.ToNanoseconds() <= time.time_ns()
    standard = health_grpc.HealthStub(channel)
    for service in ("", "gymgui.trainer.TrainerService"):
        assert standard.Check(health.Asked(service=service)).status == 1
    unknown = health.Asked(service="missing.Service")
    assert _code(lambda: standard.Check(unknown)) is grpc.StatusCode.NOT_FOUND


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
