"""Events of training runs, printed from any training loop, and a client of the daemon that stores them.

`EventWriter` prints events, a line of JSON each; `RecordEpisodes` does so for any Gymnasium vector environment. A
program that prints events runs with or without the daemon. `TrainerClient` submits runs to the daemon and
watches them; only this class needs the packages grpcio and protobuf.
"""

from tandem.telemetry.control import Control, ControlEvent
from tandem.telemetry.daemon_errors import (
    BadSessionToken,
    DaemonError,
    DaemonFull,
    DaemonTimeout,
    DaemonUnreachable,
    RunExists,
    UnknownRun,
    WrongState,
)
from tandem.telemetry.descriptions import DaemonDescription, RunDescription
from tandem.telemetry.eval_summary import EvalSummaryWriter
from tandem.telemetry.events import EventWriter
from tandem.telemetry.feeds import MessageBlock
from tandem.telemetry.record_episodes import RecordEpisodes
from tandem.telemetry.records import Episode, LifecycleEvent, MalformedLine, Run, RunStatus, Step
from tandem.telemetry.subscription import Subscription
from tandem.telemetry.trainer_client import Health, Submitted, TrainerClient
from tandem.telemetry.worker_session import Published, WorkerSession

__all__ = [
    "BadSessionToken",
    "Control",
    "ControlEvent",
    "DaemonDescription",
    "DaemonError",
    "DaemonFull",
    "DaemonTimeout",
    "DaemonUnreachable",
    "Episode",
    "EvalSummaryWriter",
    "EventWriter",
    "Health",
    "LifecycleEvent",
    "MalformedLine",
    "MessageBlock",
    "Published",
    "RecordEpisodes",
    "Run",
    "RunDescription",
    "RunExists",
    "RunStatus",
    "Step",
    "Submitted",
    "Subscription",
    "TrainerClient",
    "UnknownRun",
    "WorkerSession",
    "WrongState",
]
