"""Arguments that `TrainerClient` or the daemon refuses, and the error texts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.telemetry import Episode, RunStatus, Step, TrainerClient
from tandem.testing.daemons import Gate, run_config, running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

_MAX_MESSAGE_BYTES = 64 << 20


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainerClient]:
    """A client of a daemon that the tests leave unchanged."""
    with running_daemon(tmp_path_factory.mktemp("data")) as daemon, TrainerClient(daemon.address) as client:
        yield client


def _nested(depth: int) -> dict[str, Any]:
    inside: dict[str, Any] = {}
    for _ in range(depth):
        inside = {"in": inside}
    return inside


def test_invalid_arguments_are_refused(client: TrainerClient) -> None:
    """The client refuses the argument, or the daemon does; the text names the argument."""
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: client.submit({"x": object()}), "config: "),
        (lambda: client.submit({"x": float("nan")}), "config: "),
        (lambda: client.submit(None), "config: expected a TrainRunConfig as a mapping .*, found None; "),  # type: ignore[arg-type]
        (lambda: client.submit(b"{}"), "config: expected a TrainRunConfig .*, found b'{}'; "),  # type: ignore[arg-type]
        (lambda: client.submit(_nested(5000)), "config: .* found lists and mappings nested too deep; "),
        (lambda: client.submit("{"), "SubmitRun at "),
        (lambda: client.submit(run_config("true") | {"entry_point": 7}), "entry_point"),
        (lambda: client.steps("x", since_seq=-1), "StreamRunSteps: "),
        (lambda: client.steps("x", since_seq=None), "StreamRunSteps: since_seq: .*, found None; "),  # type: ignore[arg-type]
        (
            lambda: client.watch(since_seq=2**64),
            "WatchRuns: since_seq: expected an integer in 0 .. 18446744073709551615",
        ),
        (lambda: client.steps(None), "StreamRunSteps: run_id: expected a string, found None; "),  # type: ignore[arg-type]
        (lambda: client.steps(7), "StreamRunSteps: "),  # type: ignore[arg-type]
        (lambda: client.steps(b"x"), "StreamRunSteps: run_id: expected a string, found b'x'"),  # type: ignore[arg-type]
        (lambda: client.cancel(b"x"), "CancelRun: run_id: expected a string"),  # type: ignore[arg-type]
        (lambda: client.submit("{}", run_id=b"x"), "SubmitRun: run_id: expected a string"),  # type: ignore[arg-type]
        (lambda: client.submit("{}", run_id=5), "SubmitRun: run_id: expected a string, found 5; "),  # type: ignore[arg-type]
        (lambda: client.register("x", b"w"), "RegisterWorker: worker_id: expected a string"),  # type: ignore[arg-type]
        (lambda: client.control().pause(b"x"), "ControlStream: run_id: expected a string"),  # type: ignore[arg-type]
        (lambda: client.control().grant("x", None), "ControlStream: grant_steps: expected a value, found None"),  # type: ignore[arg-type]
        (lambda: client.runs("TERM"), "ListRuns: "),  # type: ignore[arg-type]
        (lambda: client.cancel("x", timeout=-1), "timeout"),
        (lambda: TrainerClient(""), "target"),
        (lambda: TrainerClient(7), "target"),  # type: ignore[arg-type]
        (lambda: TrainerClient(timeout=-1), "timeout"),
    ]
    for call, fact in refused:
        with pytest.raises(tandem.InvalidArgument, match=fact):
            call()


def test_message_that_is_too_large_is_refused_before_it_is_sent(client: TrainerClient, tmp_path: Path) -> None:
    """The client checks the size: gRPC's own status would mean a full daemon. The daemon checks smaller messages."""
    expected = "expected a message of at most 67108864 bytes, found 671[0-9]*; make it smaller; "
    for call in (client.submit, client.cancel, client.heartbeat, client.steps):
        with pytest.raises(tandem.InvalidArgument, match=f"{expected}nothing was sent"):
            call("x" * _MAX_MESSAGE_BYTES)
    with pytest.raises(tandem.InvalidArgument, match="SubmitRun at "):
        client.submit("x" * (_MAX_MESSAGE_BYTES - 5))  # with the field's number and length
    gate = Gate(tmp_path / "gate")
    run_id = client.submit(gate.program("step(0)\nwait_for('end')")).run_id
    with client.watch(RunStatus.EXEC) as changes:
        next(run for run in changes if run.run_id == run_id)
    session = client.register(run_id, "own")
    large = "x" * _MAX_MESSAGE_BYTES
    with pytest.raises(tandem.InvalidArgument, match=f"PublishRunSteps: {expected}the Step was not sent"):
        session.publish_steps([Step(observation_json=large)])
    with pytest.raises(tandem.InvalidArgument, match=f"PublishRunEpisodes: {expected}the Episode was not sent"):
        session.publish_episodes([Episode(metadata_json=large)])
    gate.open("end")
