"""How many frames a second go into a ring: Tandem's against bare stores into the same slots, and Python's rings."""

import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tandem
from tests.interop.foreign_fast_lane import ForeignWriter

FRAME_RATES = Path(__file__).with_name("frame_rates")
SIZES = ((84, 84), (640, 480), (1920, 1080))
CAPACITIES = (4, 8, 128)
METADATA = b'{"step":123456,"envs":[0,1,2,3]}'

# What writes -> its name in tables. The last two are what `publish` is held against.
ROWS = {
    "publish": "Tandem, publish",
    "loan": "Tandem, loan",
    "python": "Tandem from Python",
    "python_ring": "ring in Python",
    "memcpy": "memcpy alone",
    "streaming": "non-temporal stores alone",
}


@dataclass(frozen=True)
class Case:
    """A ring.

    Attributes:
      width: Of a frame.
      height: Of a frame.
      capacity: Slots.
      rates: Frames a second of each row, one for each round.
    """

    width: int
    height: int
    capacity: int
    rates: dict[str, list[float]]

    def median(self, row: str) -> float:
        """Of the rounds."""
        return statistics.median(self.rates[row])

    def against_faster_store(self) -> float:
        """How much longer a publish takes than the faster of the two bare stores: median of the rounds' ratios."""
        rounds = zip(self.rates["publish"], self.rates["memcpy"], self.rates["streaming"], strict=True)
        return statistics.median(max(memcpy, streaming) / publish for publish, memcpy, streaming in rounds)


def measure_frames(rounds: int, seconds: float) -> list[Case]:
    """Measures every row for every ring, the rows in turn.

    Args:
      rounds: How often each.
      seconds: How long each time.

    Returns:
      What was found.
    """
    found = []
    for width, height in SIZES:
        for capacity in CAPACITIES:
            rates: dict[str, list[float]] = {row: [] for row in ROWS}
            for number in range(rounds):
                rows = list(ROWS)
                first = number % len(rows)
                for row in [*rows[first:], *rows[:first]]:
                    rates[row].append(_measure(row, width, height, capacity, seconds))
            found.append(Case(width, height, capacity, rates))
            print(f"{width} x {height}, {capacity} slots: {rounds} rounds", file=sys.stderr, flush=True)
    return found


def _measure(row: str, width: int, height: int, capacity: int, seconds: float) -> float:
    if row == "python":
        config = tandem.FastLaneConfig(width, height, capacity=capacity, metadata_size=64)
        metrics = tandem.FastLaneMetrics(1.0, 2.0, 3.0)
        frame = np.full((height, width, 3), 7, np.uint8)
        with tandem.FastLaneWriter.create(f"benchmark-{uuid.uuid4().hex}", config) as writer:
            return _rate(lambda: writer.publish(frame, metrics=metrics, metadata=METADATA), capacity, seconds)
    if row == "python_ring":
        data = bytes([7]) * (width * height * 3)
        foreign = ForeignWriter(f"benchmark-{uuid.uuid4().hex}", width, height, 3, capacity, 64)
        try:
            return _rate(lambda: foreign.publish(data, (1.0, 2.0, 3.0), METADATA), capacity, seconds)
        finally:
            foreign.close()
    command = [str(FRAME_RATES), f"--row={row}", f"--width={width}", f"--height={height}", f"--capacity={capacity}"]
    ended = subprocess.run([*command, f"--seconds={seconds}"], stdout=subprocess.PIPE, check=True, text=True)
    return float(ended.stdout)


def _rate(publish: Callable[[], object], capacity: int, seconds: float) -> float:
    for _ in range(capacity):  # every page was touched once
        publish()
    now = time.perf_counter
    count, begin = 0, now()
    while now() - begin < seconds:
        for _ in range(8):
            publish()
        count += 8
    return count / (now() - begin)


def table(cases: Sequence[Case], rounds: int) -> str:
    """Lays it out in Markdown.

    Args:
      cases: What was found.
      rounds: How many rounds the medians are over.

    Returns:
      Lines.
    """
    head = ["frames/s", *(f"{case.width}×{case.height}, {case.capacity}" for case in cases)]
    lines = [f"**Frames published a second** (size, slots): medians of {rounds} rounds", "", _line(head)]
    lines.append("|---|" + "--:|" * len(cases))
    for row, label in ROWS.items():
        lines.append(_line([label, *(_figure(case.median(row)) for case in cases)]))
    ratios = [f"{case.against_faster_store():.2f}" for case in cases]
    return "\n".join([*lines, _line(["time of publish / of the faster store", *ratios])])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _figure(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.3g} K"
