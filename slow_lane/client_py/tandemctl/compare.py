"""`tandemctl compare` and `best`: runs beside each other, by their mean return or a number of their own."""

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tandem.printable import printable
from tandem.telemetry import RunDescription
from tandemctl.command_line import ExitCode
from tandemctl.daemon import Daemon
from tandemctl.output import STDOUT, Failed, complain, rendered, show, show_lines, takes_escapes, window_size
from tandemctl.runs_text import age_of, one_line, state_of, steps_text, table

_NAME_CHARACTERS = 28
_RETURN = "return"


@dataclass(frozen=True)
class Result:
    """A run and its number; NaN: it has none yet."""

    run: RunDescription
    value: float
    text: str  # such as "93.25 ± 1.5 of 100"


def compare(daemon: Daemon, options: argparse.Namespace) -> int:
    """Prints the runs of a command line, the best first."""
    results = _results(daemon, options)
    if options.json:
        show(json.dumps([_object(result, options.by or _RETURN) for result in results], indent=2) + "\n")
        return ExitCode.DONE
    names = _differing([result.run for result in results])
    numbers = [*names, _RETURN.upper() if options.by in (None, _RETURN) else options.by]
    numbers = [f">{one_line(name, _NAME_CHARACTERS)}" for name in numbers]
    titles = ["RUN", "NAME", "STATE", *numbers, ">STEPS", ">EPISODES", ">TIME"]
    rows = [
        (
            *(printable(run.run.run_id), one_line(run.run_name, _NAME_CHARACTERS), state_of(run)),
            *(one_line(run.parameters.get(name, ""), _NAME_CHARACTERS) for name in names),
            *(result.text, steps_text(run), f"{run.episodes:,}", age_of(run, time.time())),
        )
        for result in results
        for run in [result.run]
    ]
    width = window_size().columns if takes_escapes(STDOUT) else None
    show_lines(rendered(table(titles, rows), width=width))
    return ExitCode.DONE


def best(daemon: Daemon, options: argparse.Namespace) -> int:
    """Prints the run_id of the best run; its number and parameters on standard error."""
    options.words = []
    result = _results(daemon, options)[0]
    if math.isnan(result.value):
        raise Failed(f"expected a run with {options.by or 'an episode'}, found none yet")
    facts = (f"{name}={value}" for name, value in result.run.parameters.items())
    complain(one_line(f"{options.by or _RETURN} {result.text}; {' '.join([result.run.run_name, *facts])}", 400))
    show(f"{result.run.run.run_id}\n")
    return ExitCode.DONE


def _results(daemon: Daemon, options: argparse.Namespace) -> list[Result]:
    runs = [run for run in daemon.client.describe(*options.words).runs if options.sweep in (None, run.sweep)]
    if not runs:
        which = f"of the sweep {options.sweep!r}" if options.sweep else "to compare"
        raise Failed(f"expected runs {which}, found none; tandemctl list shows all")
    by_return = options.by in (None, _RETURN)
    results = [_by_return(run) if by_return else _by_scalar(daemon, run, options.by) for run in runs]
    sign = 1 if options.lowest else -1
    return sorted(results, key=lambda result: (math.isnan(result.value), sign * result.value))


def _by_return(run: RunDescription) -> Result:
    if run.mean_return is None:
        return Result(run, math.nan, "-")
    error = f" ± {run.return_deviation / math.sqrt(run.mean_of):.2g}" if run.mean_of > 1 else ""
    return Result(run, run.mean_return, f"{run.mean_return:.6g}{error} of {run.mean_of}")


def _by_scalar(daemon: Daemon, run: RunDescription, name: str) -> Result:
    value, step = math.nan, 0
    begin = run.attempts[-1].scalars if run.attempts else 0
    for event in daemon.client.scalars(run.run.run_id, since_seq=begin, follow=False):
        if name in event.names:
            value, step = event.values[event.names.index(name)], event.step
    return Result(run, value, "-" if math.isnan(value) else f"{value:.6g} at {step:,}")


def _differing(runs: Sequence[RunDescription]) -> list[str]:
    """Returns the parameters in which the runs differ; all of a single run."""
    names = dict.fromkeys(name for run in runs for name in run.parameters)
    return [name for name in names if len(runs) == 1 or len({run.parameters.get(name) for run in runs}) > 1]


def _object(result: Result, by: str) -> dict[str, Any]:
    run = result.run
    return {
        "run_id": run.run.run_id,
        "name": run.run_name,
        "state": state_of(run),
        "parameters": run.parameters,
        "by": by,
        "value": result.value if math.isfinite(result.value) else None,
        "episodes_counted": run.mean_of if by == _RETURN else None,
        "steps": run.steps,
        "episodes": run.episodes,
    }
