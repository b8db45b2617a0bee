"""`tandemctl logs`: what a run's worker wrote, or which of its lines are malformed events."""

import time
from pathlib import Path
from typing import BinaryIO

from tandem.errors import TandemError
from tandem.telemetry import TrainerClient, UnknownRun
from tandemctl.command_line import Options
from tandemctl.output import Failed, show
from tandemctl.texts import one_line, state_of

_BETWEEN_READS_SECS = 0.2
_READS_PER_QUESTION = 5  # the daemon is asked once a second
_BLOCK_BYTES = 1 << 16
_SHOWN_CHARACTERS = 1000


def show_logs(client: TrainerClient, options: Options) -> None:
    """Prints a run's output.

    Args:
      client: Of the daemon.
      options: Of the command line.

    Raises:
      Failed: There is no output to read, or it cannot be printed.
      TandemError: As `TrainerClient.describe`.
    """
    (run_id,) = options.words
    (run,) = client.describe(run_id).runs
    if options.malformed:
        for line in client.malformed(run_id, follow=options.follow):
            reason, head = one_line(line.reason, _SHOWN_CHARACTERS), one_line(line.head, _SHOWN_CHARACTERS)
            show(f"{line.seq_id}: at byte {line.offset}, {line.length} bytes: {reason}: {head}\n")
        return
    path = Path(run.folder) / ("stderr.log" if options.stderr else "stdout.jsonl")
    more = options.follow and not run.run.status.final
    file: BinaryIO | None = None
    reads = 0
    while True:
        try:
            file = file or path.open("rb", buffering=0)
            while block := file.read(_BLOCK_BYTES):
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
            return
        time.sleep(_BETWEEN_READS_SECS)
        reads += 1
        if reads % _READS_PER_QUESTION == 0:
            more = _continues(client, run_id)


def _continues(client: TrainerClient, run_id: str) -> bool:
    """Tells whether more may come: a daemon that does not answer says nothing of it, a run that is gone has ended."""
    try:
        return not client.describe(run_id).runs[0].run.status.final
    except UnknownRun:
        return False
    except TandemError:
        return True
