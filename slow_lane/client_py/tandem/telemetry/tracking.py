"""`track`: the events of a whole program, by one line. `job_events`: a writer that is silent outside of jobs."""

import atexit
import os
import sys
from types import TracebackType

from tandem.engine.worker_environment import RUN_ID_VARIABLE
from tandem.telemetry.events import EventWriter


def job_events() -> EventWriter:
    """Returns a writer of events; it prints nothing unless the program is a job of the daemon."""
    if os.environ.get(RUN_ID_VARIABLE):
        return EventWriter()
    return EventWriter(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # as long as the writer


def track(**facts: object) -> EventWriter:
    """Prints run_started with facts now, and run_completed or run_failed when the program ends.

    Returns the writer, for `episode`, `scalars` and events of your own. Outside of a job of the daemon nothing is
    printed. An exception that ends the main thread is run_failed; another exit code than 0 is known to the daemon.

    >>> events = track(env_id="CartPole-v1", algo="ppo")
    >>> events.scalars(100, {"loss": 0.5})
    """
    events = job_events()
    events.lifecycle("run_started", facts)
    show = sys.excepthook
    failed = False

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        nonlocal failed
        failed = True
        show(kind, error, trace)
        events.failed(error)

    def complete() -> None:
        if not failed:
            events.lifecycle("run_completed")

    sys.excepthook = end
    atexit.register(complete)
    return events
