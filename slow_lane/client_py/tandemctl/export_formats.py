"""`tandemctl export --format parquet` and `tensorboard`: by pyarrow, and by TensorBoard's own writer."""

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tandem.telemetry import Scalars
from tandemctl.output import Failed

_INTEGERS = "seq_id episode_index step_index steps step payload_version episode_seed".split()
_REALS = ("reward", "total_reward", "value")
_FLAGS = ("terminated", "truncated")


class ParquetTable:
    """Writes rows of CSV as a Parquet file: integers, doubles and flags; all others are texts."""

    def __init__(self, write: Callable[[bytes], None], columns: str) -> None:
        """Writes by `write`; `columns` is the line of names. Failed: pyarrow is missing."""
        try:
            import pyarrow as arrow
            import pyarrow.csv
            import pyarrow.parquet
        except ModuleNotFoundError as error:
            raise Failed(
                f"--format parquet: expected pyarrow, found no module {error.name}; pip install pyarrow"
            ) from None
        self._csv, self._columns = arrow.csv, columns
        kinds = {name: arrow.uint64() for name in _INTEGERS} | {name: arrow.float64() for name in _REALS}
        kinds |= {name: arrow.bool_() for name in _FLAGS}
        schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in columns.split(",")])
        # NaN is a number, not a missing one.
        self._options = arrow.csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=False)
        self._parse = arrow.csv.ParseOptions(newlines_in_values=True)
        self._sink = arrow.PythonFile(_Sink(write), mode="w")
        self._writer = arrow.parquet.ParquetWriter(self._sink, schema)

    def add(self, rows: Sequence[str]) -> None:
        """Adds rows of CSV, each with its newline."""
        text = "".join([f"{self._columns}\n", *rows]).encode()
        read = self._csv.ReadOptions(block_size=len(text) + 1)  # a row may be longer than the default block
        table = self._csv.read_csv(io.BytesIO(text), read, self._parse, self._options)
        self._writer.write_table(table)

    def close(self) -> None:
        """Completes the file."""
        self._writer.close()


class _Sink:
    """A file that `write` appends to."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write, self._bytes, self.closed = write, 0, False

    def write(self, data: Any) -> int:
        self._write(bytes(data))
        self._bytes += len(data)
        return len(data)

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        """Has nothing to flush."""

    def close(self) -> None:
        self.closed = True


def last_attempts(events: Iterable[Scalars], begins: Iterable[int]) -> Iterator[Scalars]:
    """Yields the events of an undisturbed training: a later attempt replaces what it repeats of the earlier ones.

    `begins` are the numbers of rows before the second attempt and each later one.
    """
    kept: list[Scalars] = []
    later = sorted(begins, reverse=True)
    for event in events:
        if later and event.seq_id > later[-1]:
            kept = [each for each in kept if each.step < event.step]
        while later and event.seq_id > later[-1]:  # attempts without an event
            later.pop()
        kept.append(event)
    yield from kept


def write_tensorboard(folder: str, scalars: Iterable[Scalars], episodes: Iterable[Any]) -> None:
    """Writes a new file of events into a folder, which it makes. Failed: the package tensorboard is missing."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ModuleNotFoundError as error:
        raise Failed(
            f"--format tensorboard: expected tensorboard, found no module {error.name}; pip install tensorboard"
        ) from None
    try:
        os.makedirs(folder, exist_ok=True)
        writer = EventFileWriter(folder)
    except OSError as error:
        raise Failed(f"--out: expected a folder to write to, found: {error.strerror}: {folder}") from error

    def add(step: int, time: Any, values: dict[str, float]) -> None:
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        writer.add_event(Event(wall_time=time.timestamp() if time else 0, step=step, summary=summary))

    for event in scalars:
        add(event.step, event.timestamp, dict(zip(event.names, event.values, strict=True)))
    steps = 0
    for episode in episodes:
        steps += episode.steps
        returns = {"episode/return": episode.total_reward, "episode/length": episode.steps}
        add(steps, episode.timestamp, returns)
    writer.close()
