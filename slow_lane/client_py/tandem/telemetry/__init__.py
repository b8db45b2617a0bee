"""Events of training runs, printed from any training loop, and a client of the daemon that stores them.

`EventWriter` prints events, a line of JSON each; `RecordEpisodes` does so for any Gymnasium vector environment. A
program that prints events runs with or without the daemon. `TrainerClient` submits runs to the daemon and
watches them; only this class needs the packages grpcio and protobuf.
"""

import importlib
from typing import TYPE_CHECKING, Any

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
from tandem.telemetry.descriptions import Attempt, DaemonDescription, RegisteredWorker, RunDescription
from tandem.telemetry.feeds import MessageBlock
from tandem.telemetry.records import Episode, LifecycleEvent, MalformedLine, Run, RunStatus, Scalars, Step
from tandem.telemetry.subscription import Subscription
from tandem.telemetry.tls_files import TlsFiles
from tandem.telemetry.trainer_client import Health, Submitted, TrainerClient
from tandem.telemetry.worker_session import Published, WorkerSession

if TYPE_CHECKING:
    from tandem.telemetry.eval_summary import EvalSummaryWriter
    from tandem.telemetry.events import EventWriter
    from tandem.telemetry.record_episodes import RecordEpisodes
    from tandem.telemetry.tracking import job_events, track

__all__ = [
    "Attempt",
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
    "RegisteredWorker",
    "RecordEpisodes",
    "Run",
    "RunDescription",
    "RunExists",
    "RunStatus",
    "Scalars",
    "Step",
    "Submitted",
    "Subscription",
    "TlsFiles",
    "TrainerClient",
    "UnknownRun",
    "WorkerSession",
    "WrongState",
    "job_events",
    "track",
]

# What a training uses needs NumPy or Gymnasium; a program that watches runs, such as tandemctl, starts without them.
_IMPORTED_LATER = {
    "EvalSummaryWriter": "eval_summary",
    "EventWriter": "events",
    "RecordEpisodes": "record_episodes",
    "job_events": "tracking",
    "track": "tracking",
}
_OF_FRAMEWORKS = ("rllib", "sb3", "tensorboard", "tianshou", "torchrl", "xuance")  # modules that import them


def __getattr__(name: str) -> Any:
    """Imports a name of _IMPORTED_LATER, or a module of _OF_FRAMEWORKS."""
    if name in _OF_FRAMEWORKS:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _IMPORTED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_IMPORTED_LATER[name]}"), name)
    globals()[name] = found
    return found
