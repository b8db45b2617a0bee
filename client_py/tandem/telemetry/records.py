"""What the daemon tells of runs, as plain values. Fields are named as in its messages (schema/protos/trainer.proto)."""

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, make_dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar

from tandem.arguments import shown

_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST_SECOND = 2**63 // 10**9 - 1  # the daemon keeps nanoseconds in 64 bits


class RunStatus(enum.IntEnum):
    """What a run is doing."""

    UNSPECIFIED = 0
    INIT = 1  # accepted, and nothing more
    HSHK = 2  # its proxy is there
    RDY = 3  # its worker is there
    EXEC = 4  # its worker has printed an event
    PAUSE = 5
    FAULT = 6  # has ended badly; `Run.failure_reason` says how
    TERM = 7  # has ended well, or was cancelled

    @property
    def final(self) -> bool:
        """Whether a run with this status has ended."""
        return self in (RunStatus.FAULT, RunStatus.TERM)


@dataclass(frozen=True, slots=True)
class Run:
    """A run at a change of its status.

    Attributes:
      run_id: Its name.
      status: Since `updated_at`.
      digest: SHA-256 of its configuration, in hexadecimal.
      created_at: When it was submitted.
      updated_at: When its status changed.
      last_heartbeat: When its worker was last known to live; None: not yet.
      failure_reason: Why it has ended badly, or before its time; None: it has not.
      gpu_slots: Which GPUs it has.
      seq_id: Number of this change, among those of all runs.
    """

    run_id: str
    status: RunStatus
    digest: str
    created_at: datetime | None
    updated_at: datetime | None
    last_heartbeat: datetime | None
    failure_reason: str | None
    gpu_slots: tuple[int, ...]
    seq_id: int

    @staticmethod
    def from_message(message: Any) -> "Run":
        """Copies a RunRecord."""
        return Run(
            message.run_id,
            RunStatus(message.status),
            message.digest,
            time_of(message, "created_at"),
            time_of(message, "updated_at"),
            time_of(message, "last_heartbeat"),
            message.failure_reason if message.HasField("failure_reason") else None,
            tuple(message.gpu_slots),
            message.seq_id,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a run. Only what its worker said is there; the rest is empty.

    Attributes:
      run_id: Whose.
      episode_index: Number of the episode.
      step_index: Number of the step in its episode.
      action_json: What was done, as JSON.
      observation_json: What was seen afterwards, as JSON.
      reward: For it.
      terminated: Whether the episode ended with this step.
      truncated: Whether it was cut off with this step.
      policy_label: Which policy acted.
      backend: What simulated.
      seq_id: From the daemon: its number among the run's steps in the table, from 1. To the daemon: the worker's own
        number of it, by which it is kept once (see `WorkerSession`); 0: none.
      agent_id: Whose step, among several agents.
      render_hint_json: How to draw it, as JSON.
      frame_ref: Where a picture of it is.
      payload_version: Of the worker's own making.
      render_payload_json: What a viewer draws it from, as JSON.
      episode_seed: What the episode was reset with.
      worker_id: Which of the run's workers said it.
      timestamp: When it was made, in UTC.
    """

    run_id: str = ""
    episode_index: int = 0
    step_index: int = 0
    action_json: str = ""
    observation_json: str = ""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    policy_label: str = ""
    backend: str = ""
    seq_id: int = 0
    agent_id: str = ""
    render_hint_json: str = ""
    frame_ref: str = ""
    payload_version: int = 0
    render_payload_json: str = ""
    episode_seed: int = 0
    worker_id: str = ""
    timestamp: datetime | None = None

    @property
    def action(self) -> Any:
        """What was done; None: the worker did not say."""
        return json.loads(self.action_json) if self.action_json else None

    @property
    def observation(self) -> Any:
        """What was seen afterwards; None: the worker did not say."""
        return json.loads(self.observation_json) if self.observation_json else None

    @staticmethod
    def from_message(message: Any) -> "Step":
        """Copies a RunStep."""
        return _step_of(message)


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode of a run that has ended. Only what its worker said is there; the rest is empty.

    Attributes:
      run_id: Whose.
      episode_index: Its number.
      total_reward: Sum of its rewards.
      steps: How many it had.
      terminated: Whether it reached its end.
      truncated: Whether it was cut off.
      metadata_json: Whatever else the worker said of it, as JSON.
      seq_id: As a step's.
      agent_id: Whose, among several agents.
      worker_id: Which of the run's workers said it.
      timestamp: When it ended, in UTC.
    """

    run_id: str = ""
    episode_index: int = 0
    total_reward: float = 0.0
    steps: int = 0
    terminated: bool = False
    truncated: bool = False
    metadata_json: str = ""
    seq_id: int = 0
    agent_id: str = ""
    worker_id: str = ""
    timestamp: datetime | None = None

    @property
    def metadata(self) -> Any:
        """Whatever else the worker said of it; None: nothing."""
        return json.loads(self.metadata_json) if self.metadata_json else None

    @staticmethod
    def from_message(message: Any) -> "Episode":
        """Copies a RunEpisode."""
        return _episode_of(message)


@dataclass(frozen=True, slots=True)
class LifecycleEvent:
    """An event of a run as a whole, such as "run_started".

    Attributes:
      event: Its name.
      payload_json: What the worker said with it, as JSON; empty: nothing.
      timestamp: When it was made, in UTC.
      worker_id: Which of the run's workers said it.
      seq_id: Its number among the run's lifecycle events, from 1.
    """

    event: str
    payload_json: str
    timestamp: datetime | None
    worker_id: str
    seq_id: int

    @property
    def payload(self) -> Any:
        """Returns `payload_json`, decoded; None: the worker sent no payload."""
        return json.loads(self.payload_json) if self.payload_json else None

    @staticmethod
    def from_message(message: Any) -> "LifecycleEvent":
        """Copies a LifecycleEvent message."""
        return LifecycleEvent(
            message.event, message.payload_json, time_of(message, "timestamp"), message.worker_id, message.seq_id
        )


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line of a worker's output that begins with "{" and is no valid event.

    Attributes:
      offset: Of its first byte in the worker's standard output.
      length: Bytes, without the newline.
      reason: The field, what was expected and what was found.
      head: Its first 1,024 bytes, made printable.
      seq_id: Its number among the run's malformed lines, from 1.
    """

    offset: int
    length: int
    reason: str
    head: str
    seq_id: int

    @staticmethod
    def from_message(message: Any) -> "MalformedLine":
        """Copies a MalformedLine message."""
        return MalformedLine(message.offset, message.length, message.reason, message.head, message.seq_id)


def fill_message(message: Any, record: Step | Episode) -> None:
    """Copies a record into the message of its kind.

    Args:
      message: An empty RunStep or RunEpisode.
      record: A Step or an Episode.

    Raises:
      TypeError: Bytes, which protobuf takes for text.
      ValueError: A value that its field cannot have.
    """
    for name in _plain_fields(type(record)):
        value = getattr(record, name)
        if isinstance(value, bytes):  # which protobuf takes for text
            raise TypeError(f"{name}: expected no bytes, found {shown(value)}")
        try:
            setattr(message, name, value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}, found {shown(value)}") from error
    if record.timestamp is not None:
        message.timestamp.FromDatetime(record.timestamp)
        if abs(message.timestamp.seconds) > _LAST_SECOND:
            raise ValueError(f"timestamp: expected one from 1677-09-22 to 2262-04-11, found {record.timestamp}")


_Timed = TypeVar("_Timed", Step, Episode)


def _plain_fields(kind: type[Step] | type[Episode]) -> list[str]:
    return [field.name for field in fields(kind) if field.name != "timestamp"]


def time_of(message: Any, name: str) -> datetime | None:
    """Reads a time.

    Args:
      message: Any message.
      name: Of its field, a Timestamp.

    Returns:
      The time in UTC, cut to microseconds; None: the field is not set.
    """
    if not message.HasField(name):
        return None
    time = getattr(message, name)
    return _EPOCH + timedelta(0, time.seconds, time.nanos // 1000)  # as ToDatetime, in half of its time


def _copier(kind: type[_Timed]) -> Callable[[Any], _Timed]:
    """Makes the copier of messages of a kind.

    A frozen class sets each of its fields by a call: 0.8 us of the 2.3 that a step would take. So a twin of it is
    filled that is not frozen, and then gets its class.
    """
    names = [field.name for field in fields(kind)]
    twin: Any = make_dataclass(f"_Thawed{kind.__name__}", names, slots=True)
    assert list(kind.__slots__) == list(twin.__slots__) == names
    assert names[-1] == "timestamp"  # as `copied` has it
    plain_values = attrgetter(*_plain_fields(kind))

    def copied(message: Any) -> _Timed:
        record = twin(*plain_values(message), time_of(message, "timestamp"))
        record.__class__ = kind
        return record  # type: ignore[no-any-return]

    return copied


_step_of = _copier(Step)
_episode_of = _copier(Episode)
