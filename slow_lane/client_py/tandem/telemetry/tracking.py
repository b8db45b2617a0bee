"""`track`: the events of a whole program, by one line. `job_events`: a writer that is silent outside of jobs."""

import atexit
import contextlib
import functools
import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from tandem.engine.worker_environment import RUN_ID_VARIABLE
from tandem.errors import InvalidArgument
from tandem.telemetry.events import EventWriter

_begun: set[EventWriter] = set()


@functools.cache
def job_events() -> EventWriter:
    """Returns the program's writer of events; it prints nothing unless the program is a job of the daemon."""
    if os.environ.get(RUN_ID_VARIABLE):
        return EventWriter()
    return EventWriter(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # as long as the writer


def numbers_in(values: Mapping[Any, object], outer: str = "") -> dict[str, float]:
    """Returns the numbers among a logger's values, those of inner mappings by "outer/inner".

    >>> numbers_in({"loss": np.float32(0.5), "name": "ppo", "time": {"fps": 9}})
    {'loss': 0.5, 'time/fps': 9.0}
    """
    found: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= numbers_in(value, f"{outer}{name}/")
        elif isinstance(value, int | float | np.number):
            found[f"{outer}{name}"] = float(value)
    return found


def track(**facts: object) -> EventWriter:
    """Prints run_started with facts now, and run_completed or run_failed when the program ends.

    Returns the writer, for `episode`, `scalars` and events of your own. Outside of a job of the daemon nothing is
    printed. An exception that ends the main thread is run_failed; another exit code than 0 is known to the daemon.

    >>> events = track(env_id="CartPole-v1", algo="ppo")
    >>> events.scalars(100, {"loss": 0.5})
    """
    begin_run(job_events(), facts)
    return job_events()


def begin_run(events: EventWriter, facts: Mapping[str, object]) -> None:
    """Prints run_started with facts now, and run_completed or run_failed when the program ends.

    Both are printed once. A later call with the same writer prints training_started.
    """
    events.lifecycle("training_started" if events in _begun else "run_started", facts)
    if events in _begun:
        return
    _begun.add(events)
    show = sys.excepthook
    process = os.getpid()
    failed = False

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        nonlocal failed
        failed = True
        show(kind, error, trace)
        if os.getpid() == process:  # no forked one
            with contextlib.suppress(InvalidArgument):  # the stream was closed
                events.failed(error)

    def complete() -> None:
        if not failed and os.getpid() == process:
            with contextlib.suppress(InvalidArgument):
                events.lifecycle("run_completed")

    sys.excepthook = end
    atexit.register(complete)
