r"""`tandemctl export`: a run's durable events as CSV, quoted by RFC 4180, numbers with 17 digits, times in UTC.

Rows are written out for speed: a million steps pass through here. csv.writer takes longer, and does not quote "\r"
before Python 3.13.
"""

import argparse
import contextlib
import datetime
import functools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from tandem.telemetry import Attempt, RunDescription
from tandem.telemetry.wire import load
from tandemctl.daemon import Daemon
from tandemctl.export_formats import ParquetTable, write_tensorboard
from tandemctl.output import STDERR, show, takes_escapes
from tandemctl.part_file import replaced

# The first columns of each stream; those of further fields of its messages follow, then "attempt".
COLUMNS = {
    "steps": (
        "seq_id,worker_id,episode_index,step_index,reward,terminated,truncated,timestamp,agent_id,action_json,"
        "observation_json,policy_label,backend,episode_seed,frame_ref,render_hint_json,render_payload_json,"
        "payload_version"
    ),
    "episodes": (
        "seq_id,worker_id,episode_index,total_reward,steps,terminated,truncated,timestamp,agent_id,metadata_json"
    ),
    "lifecycle": "seq_id,worker_id,event,timestamp,payload_json",
    "scalars": "seq_id,worker_id,step,name,value,timestamp",  # a row for each number
}
_IN_ROWS = {"scalars": ("names", "values")}  # fields that are in the rows under other names

_EPOCH = datetime.datetime(1970, 1, 1)
_FLAGS = ("false", "true")


def text(value: str) -> str:
    """Returns a field of CSV, in quotes if it needs them."""
    if '"' in value:
        return '"' + value.replace('"', '""') + '"'
    return f'"{value}"' if "," in value or "\n" in value or "\r" in value else value


# For texts of which few are different.
_name = functools.lru_cache(1024)(text)


@functools.lru_cache(4)
def _second(seconds: int) -> str:
    return (_EPOCH + datetime.timedelta(seconds=seconds)).isoformat()


def _time(message: Any) -> str:
    if not message.HasField("timestamp"):
        return ""
    timestamp = message.timestamp
    second, nanos = _second(timestamp.seconds), timestamp.nanos
    if nanos % 10:
        return f"{second}.{nanos:09d}Z"
    return f"{second}.{nanos:09d}".rstrip("0") + "Z" if nanos else f"{second}Z"


# Those of a step's columns that are the same in many steps, and its last.
_tail_values = attrgetter(*COLUMNS["steps"].split(",")[11:])


@functools.lru_cache(1024)
def _tail(values: tuple[str | int, ...]) -> str:
    return ",".join(text(value) if isinstance(value, str) else str(value) for value in values)


def _steps(messages: Iterable[Any]) -> list[str]:
    return [
        f"{step.seq_id},{_name(step.worker_id)},{step.episode_index},{step.step_index},{step.reward:.17g},"
        f"{_FLAGS[step.terminated]},{_FLAGS[step.truncated]},{_time(step)},{_name(step.agent_id)},"
        f"{(action := step.action_json) and text(action)},"
        f"{(observation := step.observation_json) and text(observation)},{_tail(_tail_values(step))}\n"
        for step in messages
    ]


def _episodes(messages: Iterable[Any]) -> list[str]:
    return [
        f"{episode.seq_id},{_name(episode.worker_id)},{episode.episode_index},{episode.total_reward:.17g},"
        f"{episode.steps},{_FLAGS[episode.terminated]},{_FLAGS[episode.truncated]},{_time(episode)},"
        f"{_name(episode.agent_id)},{text(episode.metadata_json)}\n"
        for episode in messages
    ]


def _lifecycle(messages: Iterable[Any]) -> list[str]:
    return [
        f"{event.seq_id},{_name(event.worker_id)},{text(event.event)},{_time(event)},{text(event.payload_json)}\n"
        for event in messages
    ]


def _scalars(messages: Iterable[Any]) -> list[str]:
    return [
        f"{event.seq_id},{_name(event.worker_id)},{event.step},{_name(name)},{value:.17g},{_time(event)}\n"
        for event in messages
        for name, value in zip(event.names, event.values, strict=True)
    ]


# Stream -> what makes rows, each with its newline, of the daemon's messages.
ROWS = {"steps": _steps, "episodes": _episodes, "lifecycle": _lifecycle, "scalars": _scalars}


@functools.cache
def further_columns(stream: str) -> tuple[str, ...]:
    """Returns the fields of a stream's messages that COLUMNS does not name."""
    batch = load().methods["StreamEvents"].response.DESCRIPTOR
    known = {"run_id", *COLUMNS[stream].split(","), *_IN_ROWS.get(stream, ())}
    return tuple(field.name for field in batch.fields_by_name[stream].message_type.fields if field.name not in known)


def rows_of(stream: str, messages: Iterable[Any]) -> list[str]:
    """Returns a row for each of the daemon's messages, with its newline."""
    rows, further = ROWS[stream](messages), further_columns(stream)
    if not further or stream in _IN_ROWS:
        return rows
    return [
        ",".join((row[:-1], *(text(str(getattr(message, name))) for name in further))) + "\n"
        for row, message in zip(rows, messages, strict=True)
    ]


def export(daemon: Daemon, options: argparse.Namespace) -> int:
    """Exports the events that the command line names; returns 0."""
    (run_id,) = options.words
    stream = next((name for name in ("episodes", "lifecycle", "scalars") if getattr(options, name)), "steps")
    (run,) = daemon.client.describe(run_id).runs
    if options.format == "tensorboard":
        _export_board(daemon, run, options.out)
        return 0
    columns = ",".join((COLUMNS[stream], *further_columns(stream), "attempt"))
    # What becomes durable from now on may be of a further attempt, whose begin is not known here.
    ends = [*(getattr(attempt, stream) for attempt in run.attempts), getattr(run, stream)]
    output = replaced(options.out) if options.out else contextlib.nullcontext(show)
    with output as write, _progress(ends[-1]) as advance:
        table = ParquetTable(write, columns) if options.format == "parquet" else None
        if table is None:
            write(f"{columns}\n".encode())
        for block in daemon.client.blocks(run_id, stream):
            for attempt, messages in groupby(block.messages, lambda message: bisect_left(ends, message.seq_id)):
                if attempt == len(ends):
                    break
                rows = [f"{row[:-1]},{attempt}\n" for row in rows_of(stream, list(messages))]
                if table is None:
                    write("".join(rows).encode())
                else:
                    table.add(rows)
            advance(len(block.messages))
        if table is not None:
            table.close()
    return 0


def _export_board(daemon: Daemon, run: RunDescription, out: str) -> None:
    """Writes the scalars and episodes of a run; those of several attempts into a folder each, since steps repeat."""
    ends: list[Attempt | RunDescription] = [*run.attempts[1:], run]
    for attempt, end in zip(run.attempts, ends, strict=False):  # a run that has not started has no attempt
        scalars = daemon.client.scalars(run.run.run_id, since_seq=attempt.scalars, follow=False)
        episodes = daemon.client.episodes(run.run.run_id, since_seq=attempt.episodes, follow=False)
        write_tensorboard(
            Path(out, f"attempt_{attempt.number}") if len(run.attempts) > 1 else Path(out),
            islice(scalars, end.scalars - attempt.scalars),
            islice(episodes, end.episodes - attempt.episodes),
        )


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
