"""`python -m tandem.rerun`: frames and numbers of a run, in the Rerun viewer or in a file.

It needs the package rerun-sdk: pip install tandem-shm[rerun].
"""

import argparse
import contextlib
import io
import json
import math
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tandem.errors import TandemError
from tandem.fastlane import FastLaneFrame, FastLaneReader

_BATCH_SECS = 1.0
_POLL_SECS = 0.005
_NUMBERS = ("reward", "return", "steps_per_second", "episodes", "episode_length")


@dataclass
class _Batch:
    """The frames of a second, in columns."""

    seconds: list[float] = field(default_factory=list)  # since 1970
    steps: list[int] = field(default_factory=list)
    images: list[bytes] = field(default_factory=list)
    numbers: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _NUMBERS})


def _jpeg(frame: FastLaneFrame, quality: int) -> bytes:
    from PIL import Image  # rerun-sdk needs it, too

    written = io.BytesIO()
    Image.fromarray(frame.view[..., :3]).save(written, "JPEG", quality=quality)
    return written.getvalue()


def _metadata(frame: FastLaneFrame) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(frame.metadata or b"{}")
        if isinstance(found, dict):
            return found
    return {}


def _add(batch: _Batch, frame: FastLaneFrame, quality: int) -> None:
    metadata = _metadata(frame)
    step = metadata.get("step")
    batch.seconds.append(time.time())
    batch.steps.append(step if isinstance(step, int) else frame.number)
    batch.images.append(_jpeg(frame, quality))
    metrics = frame.metrics
    numbers = [metrics.last_reward, metrics.rolling_return, metrics.step_rate_hz]
    numbers += [metadata.get(name, math.nan) for name in ("episodes", "episode_length")]
    for name, number in zip(_NUMBERS, numbers, strict=True):
        batch.numbers[name].append(float(number))


def _send(recording: Any, batch: _Batch) -> None:
    import rerun

    if not batch.steps:
        return
    times = [rerun.TimeColumn("time", timestamp=batch.seconds), rerun.TimeColumn("step", sequence=batch.steps)]
    columns = rerun.EncodedImage.columns(blob=batch.images, media_type=["image/jpeg"] * len(batch.images))
    recording.send_columns("frame", times, columns)
    for name, numbers in batch.numbers.items():
        if all(map(math.isnan, numbers)):
            continue  # this run's metadata does not have it
        recording.send_columns(name, times, rerun.Scalars.columns(scalars=numbers))


def _record(recording: Any, reader: FastLaneReader, quality: int) -> int:
    """Sends frames until the run ends or a signal comes; returns their number."""
    sent, batch, due = 0, _Batch(), time.monotonic() + _BATCH_SECS
    try:
        while True:
            # Looks first, so that the last frame is not lost.
            over = reader.is_invalidated() or reader.writer_alive() is False
            frame = reader.next_frame()
            if frame is not None:
                _add(batch, frame, quality)
                sent += 1
            elif over:
                return sent
            if time.monotonic() >= due:
                _send(recording, batch)
                batch, due = _Batch(), time.monotonic() + _BATCH_SECS
            if frame is None:
                time.sleep(_POLL_SECS)
    except KeyboardInterrupt:
        return sent
    finally:
        _send(recording, batch)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tandem.rerun",
        description="Shows a run's frames and numbers in the Rerun viewer, or saves them, until it ends or Ctrl-C.",
        epilog="example: python -m tandem.rerun demo --save demo.rrd; later: rerun demo.rrd",
        allow_abbrev=False,
    )
    parser.add_argument("name", help="name of an engine with frames, or of environments that publish_frames shows")
    parser.add_argument("--save", type=Path, metavar="FILE", help="writes this file instead of starting the viewer")
    parser.add_argument("--quality", type=int, default=90, help="of the JPEG images, 1 to 95; default: %(default)s")
    parsed = parser.parse_args(words)
    if not 1 <= parsed.quality <= 95:
        parser.error(f"--quality: expected 1 to 95, found {parsed.quality}")
    return parsed


def main(words: list[str] | None = None) -> int:
    """Runs the program; returns the exit code: 1 without the run, the package or the file."""
    arguments = _arguments(words)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        import rerun

        with FastLaneReader.attach(arguments.name) as reader:
            recording = rerun.RecordingStream("tandem")
            recording.send_recording_name(arguments.name)
            if arguments.save is None:
                recording.spawn()
            else:
                arguments.save.open("ab").close()  # rerun reports no error of its own
                recording.save(arguments.save)
            sent = _record(recording, reader, arguments.quality)
            recording.flush()
            recording.disconnect()
            dropped = reader.dropped
    except ModuleNotFoundError as error:
        print(f"tandem: expected rerun-sdk, found no module {error.name}\nNext: pip install rerun-sdk", file=sys.stderr)
        return 1
    except (TandemError, OSError) as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 1
    where = "shown" if arguments.save is None else f"in {arguments.save}"
    print(f"tandem: {sent} frames {where}; {dropped} were too fast for it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
