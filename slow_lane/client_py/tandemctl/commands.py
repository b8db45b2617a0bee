"""The commands, but for the larger ones: `watch` and `export`."""

import argparse
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from tandem.errors import TandemError
from tandem.printable import printable, printable_lines
from tandem.telemetry import TrainerClient, UnknownRun
from tandemctl import runs_text
from tandemctl.command_line import ExitCode, WrongUsage, parse
from tandemctl.compare import best, compare
from tandemctl.daemon import Daemon
from tandemctl.export import export
from tandemctl.output import STDOUT, Failed, complain, rendered, show, show_lines, takes_escapes, window_size
from tandemctl.run_config import read_config, run_config
from tandemctl.runs_text import age_text, one_line, state_of
from tandemctl.sweeps import Parameters, expect_used, grid, read_sweep
from tandemctl.watch import watch

_CANCEL_SECS = 60.0  # all processes of a run get time to end by themselves
_BETWEEN_READS_SECS = 0.2
_READS_PER_QUESTION = 5  # the daemon is asked once a second
_SHOWN_CHARACTERS = 1000


def run(options: argparse.Namespace) -> int:
    """Runs a command; returns the exit code."""
    daemon = Daemon(options)
    try:
        return _COMMANDS[options.command](daemon, options)
    except TandemError as error:
        raise Failed(daemon.explain(error)) from error
    finally:
        daemon.client.close()


def _submit(daemon: Daemon, options: argparse.Namespace) -> int:
    if options.config is None and options.grid:
        return _submit_sweep(daemon, options, grid(options.grid))
    config = run_config(options, Path.cwd, {}) if options.config is None else read_config(options.config)
    run_id = daemon.client.submit(config).run_id
    try:
        show(f"{run_id}\n")
    except Failed as error:
        raise Failed(f"{run_id} was submitted; {error}") from error
    return watch(daemon, run_id, submitted=True) if options.watch else ExitCode.DONE


def _submit_sweep(daemon: Daemon, options: argparse.Namespace, runs: Sequence[Parameters]) -> int:
    """Submits a run for each set of parameters; prints the run_ids, one a line."""
    expect_used([*options.program, *(value for _, value in options.env)], runs[0])
    sweep = uuid.uuid4().hex[:8]
    for number, parameters in enumerate(runs, 1):
        config = run_config(options, Path.cwd, parameters, sweep)
        try:
            show(f"{daemon.client.submit(config).run_id}\n")
        except (TandemError, Failed) as error:
            text = daemon.explain(error) if isinstance(error, TandemError) else error
            raise Failed(f"{number - 1} of {len(runs)} runs of the sweep {sweep} were submitted; {text}") from error
    complain(f"sweep {sweep}: {len(runs)} runs; next: tandemctl compare --sweep {sweep}")
    return ExitCode.DONE


def _sweep(daemon: Daemon, options: argparse.Namespace) -> int:
    (file,) = options.words
    words, runs = read_sweep(file)
    try:
        options_of_run = parse(["submit", *words], "")
    except WrongUsage as error:
        raise Failed(f"expected options of submit, found: {error}: {file}") from error
    return _submit_sweep(daemon, options_of_run, runs)


def _list(daemon: Daemon, options: argparse.Namespace) -> int:
    described = daemon.client.describe()
    runs = [run for run in described.runs if not options.state or state_of(run) in options.state]
    if options.sort:
        runs = runs_text.sorted_by(options.sort, runs)
    if options.json:
        show(runs_text.runs_json(described, runs))
    elif not runs:
        complain(f"no {'such ' if options.state else ''}runs; tandemctl submit -- PROGRAM starts one")
    else:
        width = window_size().columns if takes_escapes(STDOUT) else None
        show_lines(rendered(runs_text.runs_table(runs, time.time()), width=width))
    if described.state != "ok":
        complain(f"the daemon is not healthy: {printable(described.state)}")
    return ExitCode.DONE


def _cancel(daemon: Daemon, options: argparse.Namespace) -> int:
    run_ids = options.words
    if options.all:
        run_ids = [each.run.run_id for each in daemon.client.describe().runs if not each.run.status.final]
        if not run_ids:
            complain("every run has ended")
    with ThreadPoolExecutor(len(run_ids) or 1) as threads:  # all at once: each may take seconds
        cancel = daemon.client.cancel
        calls = {run_id: threads.submit(cancel, run_id, timeout=_CANCEL_SECS) for run_id in dict.fromkeys(run_ids)}
        return _each(daemon, run_ids, lambda run_id: calls[run_id].result(), "ended")


def _each(daemon: Daemon, run_ids: list[str], call: Callable[[str], None], done: str) -> int:
    """Calls a function for each run; the others follow after a failure."""
    code = ExitCode.DONE
    printed = []
    for run_id in run_ids:
        try:
            call(run_id)
            printed.append(f"{run_id} {done}")
        except TandemError as error:
            complain(printable_lines(f"{run_id}: {daemon.explain(error)}"))
            code = ExitCode.FAILED
    show_lines(printed)
    return code


def _logs(daemon: Daemon, options: argparse.Namespace) -> int:
    (run_id,) = options.words
    (run,) = daemon.client.describe(run_id).runs
    if options.malformed:
        for line in daemon.client.malformed(run_id, follow=options.follow):
            reason, head = one_line(line.reason, _SHOWN_CHARACTERS), one_line(line.head, _SHOWN_CHARACTERS)
            show_lines([f"{line.seq_id}: at byte {line.offset}, {line.length} bytes: {reason}: {head}"])
        return ExitCode.DONE
    path = Path(run.folder) / ("stderr.log" if options.stderr else "stdout.jsonl")
    more = options.follow and not run.run.status.final
    file: BinaryIO | None = None
    reads = 0
    while True:
        try:
            file = file or path.open("rb", buffering=0)
            while block := file.read(1 << 16):
                show(block)
        except FileNotFoundError as error:
            if not more:
                raise Failed(
                    f"expected the worker's output, found no file: either the run ({state_of(run)}) has not started "
                    "its worker, or its configuration has artifacts.persist_logs false, or the daemon runs on another "
                    f"machine; the file is {path}"
                ) from error
        except OSError as error:
            raise Failed(f"expected to read the worker's output, found: {error.strerror}: {path}") from error
        if not more:
            return ExitCode.DONE
        time.sleep(_BETWEEN_READS_SECS)
        reads += 1
        more = _continues(daemon.client, run_id) if reads % _READS_PER_QUESTION == 0 else True


def _continues(client: TrainerClient, run_id: str) -> bool:
    """Returns whether more may come: a run that is gone has ended; without an answer that is unknown."""
    try:
        return not client.describe(run_id).runs[0].run.status.final
    except TandemError as error:
        return not isinstance(error, UnknownRun)


def _health(daemon: Daemon, options: argparse.Namespace) -> int:
    del options
    health = daemon.client.health()
    described = daemon.client.describe()
    up_secs = time.time() - health.started_at.timestamp()
    show_lines(
        [
            f"daemon    {daemon.address}, pid {health.pid}, up for {age_text(up_secs)}",
            f"state     {printable(described.state)}",
            f"runs      {runs_text.runs_summary(described.runs)}",
            f"watchers  {described.watchers}",
            f"queued    {described.queued_bytes:,} bytes, the oldest for {age_text(described.oldest_queued_secs)}",
        ]
    )
    return ExitCode.DONE if health.healthy and described.state == "ok" else ExitCode.NOT_WELL


_COMMANDS: dict[str, Callable[[Daemon, argparse.Namespace], int]] = {
    "submit": _submit,
    "sweep": _sweep,
    "best": best,
    "compare": compare,
    "list": _list,
    "watch": lambda daemon, options: watch(daemon, "".join(options.words)),
    "cancel": _cancel,
    "pause": lambda daemon, options: _each(daemon, options.words, daemon.client.pause, "paused"),
    "resume": lambda daemon, options: _each(daemon, options.words, daemon.client.resume, "resumed"),
    "delete": lambda daemon, options: _each(daemon, options.words, daemon.client.delete, "deleted"),
    "logs": _logs,
    "export": export,
    "health": _health,
}
