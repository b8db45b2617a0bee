"""The state of Tandem's own daemon and its runs, beyond gymgui.trainer.TrainerService."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tandem.telemetry.records import Run, readers


@dataclass(frozen=True, slots=True)
class RegisteredWorker:
    """A worker that has called `TrainerClient.register`, with the arguments of its newest call.

    Attributes:
      worker_id: Its name, unique in the run.
      worker_kind: Its own label.
      proto_version: Version of its protocol, such as "MOSAIC/1.0"; empty: it named none.
      schema_version: Version of its events' schema; 0: it named none.
      supports_pause: Whether it is told before the run's processes are stopped.
    """

    worker_id: str
    worker_kind: str
    proto_version: str
    schema_id: str
    schema_version: int
    supports_pause: bool
    supports_checkpoint: bool

    @staticmethod
    def from_message(message: Any) -> "RegisteredWorker":
        """Copies a RegisteredWorker message."""
        return RegisteredWorker(
            **{name: read(message) for name, read in readers(RegisteredWorker, message.__class__).items()}
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a run's worker.

    Attributes:
      number: From 1.
      started: When it was begun.
      ended: When its end was known; None: it goes on.
      reason: Why it ended; empty: with exit code 0, or it goes on.
      steps: The run's rows of steps before this attempt: its own have greater numbers. So are `episodes`, `lifecycle`,
        `malformed` and `scalars`.
      steps_printed: The steps that the run had printed before it.
    """

    number: int
    started: datetime | None
    ended: datetime | None
    reason: str
    steps: int
    episodes: int
    lifecycle: int
    malformed: int
    scalars: int
    steps_printed: int

    @staticmethod
    def from_message(message: Any) -> "Attempt":
        """Copies an Attempt message."""
        return Attempt(**{name: read(message) for name, read in readers(Attempt, message.__class__).items()})


@dataclass(frozen=True, slots=True)
class RunDescription:
    """A run as it is now.

    `steps`, `episodes`, `lifecycle` and `malformed` are numbers of rows in their tables; `text_lines` those of its
    output that are no events.

    Attributes:
      run: Its name, its status and since when; `run_name` is for people.
      config_json: Its configuration, canonical; empty unless the run was asked for by its run_id.
      folder: Its folder on the daemon's machine.
      steps_printed: Steps that its worker printed; more than `steps` where they are sampled.
      bytes_read: Bytes of its output that were read.
      last_return: Total reward of the newest episode; None: there is no episode.
      steps_per_second: Rate of the last seconds.
      unreachable: Whether no heartbeat came for longer than the daemon's limit.
      proxy_starts: How often its proxy was started.
      worker_pid: Process of its worker; 0: none.
      last_event: The newest timestamp of its events; None: they have no timestamps.
      waiting_for: What keeps it from starting, such as "2 GPUs"; empty: nothing.
      output_problem: Why its output cannot be read further; empty: it can.
      max_steps: The steps at which its schedule ends it; None: no limit.
      workers: Its registered workers, by name; after its end as well.
      starved_watchers: Watchers with a ControlStream whose credits are used up: they get no steps (STARVED).
      scalars: Number of rows of its scalars.
      mean_return: Mean of the returns of its last episodes, `mean_of` of them, at most 100; None: there is no episode.
      return_deviation: Standard deviation of these returns.
      episodes_per_second: Rate of the last seconds.
      attempts: The starts of its worker, the current one last.
      parameters: What `metadata.tandem.parameters` says, by name: texts, and numbers as JSON.
      sweep: What `metadata.tandem.sweep` says; empty: it belongs to no sweep.
      priority: Runs of a higher priority start first.
      failure_line: Of a failed run: the last line of its exception; empty: unknown.
      remark: What differs from its configuration, such as dropped scalars; empty: nothing.
    """

    run: Run
    run_name: str
    config_json: str
    folder: str
    steps: int
    episodes: int
    lifecycle: int
    malformed: int
    text_lines: int
    steps_printed: int
    bytes_read: int
    last_return: float | None
    steps_per_second: float
    unreachable: bool
    proxy_starts: int
    worker_pid: int
    last_event: datetime | None
    waiting_for: str
    output_problem: str
    max_steps: int | None
    workers: tuple[RegisteredWorker, ...]
    starved_watchers: int = 0
    scalars: int = 0
    mean_return: float | None = None
    mean_of: int = 0
    return_deviation: float = 0.0
    episodes_per_second: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    sweep: str = ""
    priority: int = 0
    failure_line: str = ""
    remark: str = ""

    @staticmethod
    def from_message(message: Any) -> "RunDescription":
        """Copies a RunDescription message."""
        others = {name: read(message) for name, read in readers(RunDescription, message.__class__).items()}
        others["workers"] = tuple(map(RegisteredWorker.from_message, others["workers"]))
        others["parameters"] = dict(sorted(others.get("parameters", {}).items()))  # a map has no order
        others["attempts"] = tuple(map(Attempt.from_message, others.get("attempts", ())))
        return RunDescription(Run.from_message(message.record), **others)


@dataclass(frozen=True, slots=True)
class DaemonDescription:
    """The daemon and some or all of its runs, in the order of their submission.

    Attributes:
      state: "ok", or what is wrong, such as a full disk.
      queued_bytes: Size of the events that are not in the table yet.
      oldest_queued_secs: How long the oldest of them has been queued; 0: none is.
      watchers: How many streams of events are open.
    """

    state: str
    queued_bytes: int
    oldest_queued_secs: float
    watchers: int
    runs: tuple[RunDescription, ...]

    @staticmethod
    def from_message(message: Any) -> "DaemonDescription":
        """Copies a DescribeRunsResponse message."""
        return DaemonDescription(
            message.daemon_state,
            message.queued_bytes,
            message.oldest_queued_secs,
            message.watchers,
            tuple(map(RunDescription.from_message, message.runs)),
        )
