"""`tandemctl export`: a run's durable events as CSV."""

import contextlib
from collections.abc import Callable, Iterator

from tandemctl.command_line import Options
from tandemctl.csv_rows import COLUMNS, ROWS
from tandemctl.daemon import Daemon
from tandemctl.output import STDERR, show, takes_escapes
from tandemctl.part_file import replaced


def export(daemon: Daemon, options: Options) -> None:
    """Exports a run's events.

    Args:
      daemon: That has the run.
      options: Of the command line.

    Raises:
      Failed: The output cannot be written.
      TandemError: As `TrainerClient.describe` and `Subscription`.
    """
    (run_id,) = options.words
    stream = "episodes" if options.episodes else "lifecycle" if options.lifecycle else "steps"
    (run,) = daemon.client.describe(run_id).runs
    output = replaced(options.out) if options.out else contextlib.nullcontext(show)
    with output as write, _progress(getattr(run, stream)) as advance:
        write(f"{','.join(COLUMNS[stream])}\n".encode())
        for block in daemon.blocks(run_id, stream):
            write("".join(ROWS[stream](block.messages)).encode())
            advance(len(block.messages))


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Shows how many events are done, where standard error is a terminal."""
    if not takes_escapes(STDERR):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("events"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.console.show_cursor(True)  # a signal may end the process
        task = progress.add_task("export", total=total)
        yield lambda count: progress.advance(task, count)
