"""`tandemctl export --format parquet` and `tensorboard`: by pyarrow, and by TensorBoard's own writer."""

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tandem.errors import TandemError
from tandem.telemetry import Scalars
from tandemctl.output import Failed

_INTEGERS = "seq_id episode_index step_index steps step payload_version episode_seed attempt".split()
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


def write_tensorboard(folder: Path, scalars: Iterable[Scalars], episodes: Iterable[Any]) -> None:
    """Writes a file of events into a folder, which it makes.

    Failed: the package tensorboard is missing, or the folder has events, to which TensorBoard would add these.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ModuleNotFoundError as error:
        raise Failed(
            f"--format tensorboard: expected tensorboard, found no module {error.name}; pip install tensorboard"
        ) from None
    if found := next(folder.glob("events.out.tfevents.*"), None):
        raise Failed(f"--out: expected a folder without events of TensorBoard, found {found}; remove it")

    def add(step: int, time: Any, values: dict[str, float]) -> None:
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        writer.add_event(Event(wall_time=time.timestamp() if time else 0, step=step, summary=summary))

    try:
        folder.mkdir(parents=True, exist_ok=True)
        writer = EventFileWriter(str(folder))
        for event in scalars:
            add(event.step, event.timestamp, dict(zip(event.names, event.values, strict=True)))
        steps = 0
        for episode in episodes:
            steps += episode.steps
            returns = {"episode/return": episode.total_reward, "episode/length": episode.steps}
            add(steps, episode.timestamp, returns)
        writer.flush()  # raises what its thread met; close does not
        writer.close()
    except TandemError:  # of the daemon; some are an OSError, too
        raise
    except OSError as error:
        raise Failed(f"--out: expected a folder to write to, found: {error.strerror}: {folder}") from error
