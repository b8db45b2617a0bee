"""The commands that ask the daemon once, and the way from a command's name to what it does."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tandem.errors import TandemError
from tandem.printable import printable, printable_lines
from tandem.telemetry import TrainerClient
from tandemctl.command_line import ExitCode, Options
from tandemctl.daemon import Daemon
from tandemctl.output import STDOUT, Failed, complain, rendered, show, takes_escapes, window_size
from tandemctl.texts import age_text, count_text, runs_summary, state_of

# All processes of a run get time to end by themselves.
_CANCEL_SECS = 60.0


def run(daemon: Daemon, options: Options) -> int:
    """Runs a command.

    Args:
      daemon: To ask.
      options: Of the command line.

    Returns:
      The exit code.

    Raises:
      Failed: What it says.
      TandemError: As the client's calls; for `Daemon.explain`.
    """
    client = daemon.client
    match options.command:
        case "submit":
            return _submit(daemon, options)
        case "list":
            return _list(client, options)
        case "watch":
            from tandemctl.watch import watch

            return watch(daemon, options.words[0] if options.words else "")
        case "cancel":
            return _cancel(daemon, options)
        case "pause":
            return _each(daemon, options.words, client.pause, "paused")
        case "resume":
            return _each(daemon, options.words, client.resume, "resumed")
        case "delete":
            return _each(daemon, options.words, client.delete, "deleted")
        case "logs":
            from tandemctl.logs import show_logs

            show_logs(client, options)
        case "export":
            from tandemctl.export import export

            export(daemon, options)
        case "health":
            return _health(daemon)
    return ExitCode.DONE


def _submit(daemon: Daemon, options: Options) -> int:
    from tandemctl.run_config import read_config, run_config

    config = run_config(options, Path.cwd) if options.config is None else read_config(options.config)
    run_id = daemon.client.submit(config).run_id
    try:
        show(f"{run_id}\n")
    except Failed as error:
        raise Failed(f"{run_id} was submitted; {error}") from error
    if not options.watch:
        return ExitCode.DONE
    from tandemctl.watch import watch

    return watch(daemon, run_id, submitted=True)


def _list(client: TrainerClient, options: Options) -> int:
    described = client.describe()
    runs = [run for run in described.runs if not options.state or state_of(run) in options.state]
    if options.json:
        from tandemctl.runs_json import runs_json

        show(runs_json(described, runs))
    elif not runs:
        complain(f"no {'such ' if options.state else ''}runs; tandemctl submit -- PROGRAM starts one")
    else:
        from tandemctl.runs_table import runs_table

        width = window_size().columns if takes_escapes(STDOUT) else None
        show("".join(f"{line}\n" for line in rendered(runs_table(runs, time.time()), width=width)))
    if described.state != "ok":
        complain(f"the daemon is not healthy: {printable(described.state)}")
    return ExitCode.DONE


def _cancel(daemon: Daemon, options: Options) -> int:
    run_ids = options.words
    if options.all:
        run_ids = [each.run.run_id for each in daemon.client.describe().runs if not each.run.status.final]
        if not run_ids:
            complain("every run has ended")
            return ExitCode.DONE
    with ThreadPoolExecutor(len(run_ids)) as threads:  # all at once: each may take seconds
        calls = {
            run_id: threads.submit(daemon.client.cancel, run_id, timeout=_CANCEL_SECS)
            for run_id in dict.fromkeys(run_ids)
        }
        return _each(daemon, run_ids, lambda run_id: calls[run_id].result(), "ended")


def _each(daemon: Daemon, run_ids: list[str], call: Callable[[str], None], done: str) -> int:
    """Does the same to each run; one that fails does not keep it from the rest."""
    code = ExitCode.DONE
    printed = ""
    for run_id in run_ids:
        try:
            call(run_id)
            printed += f"{run_id} {done}\n"
        except TandemError as error:
            complain(printable_lines(f"{run_id}: {daemon.explain(error)}"))
            code = ExitCode.FAILED
    show(printed)
    return code


def _health(daemon: Daemon) -> int:
    health = daemon.client.health()
    described = daemon.client.describe()
    up_secs = time.time() - health.started_at.timestamp()
    show(
        f"daemon    {daemon.address}, pid {health.pid}, up for {age_text(up_secs)}\n"
        f"state     {printable(described.state)}\n"
        f"runs      {runs_summary(described.runs)}\n"
        f"watchers  {described.watchers}\n"
        f"queued    {count_text(described.queued_bytes)} bytes, "
        f"the oldest for {age_text(described.oldest_queued_secs)}\n"
    )
    return ExitCode.DONE if health.healthy and described.state == "ok" else ExitCode.NOT_WELL
