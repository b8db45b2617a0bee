"""How many frames a second go into a ring: Tandem's against bare stores into the same slots, and Python's rings."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

import tandem
from tests.benchmark.json_program import answer_of, timeout_of
from tests.benchmark.suite import Found, Plan, Suite
from tests.benchmark.tables import markdown
from tests.interop.foreign_fast_lane import ForeignWriter

FRAME_RATES = Path(__file__).with_name("frame_rates")
SIZES = ((84, 84), (640, 480), (1920, 1080))
CAPACITIES = (4, 8, 128)
METADATA = b'{"step":123456,"envs":[0,1,2,3]}'

# What writes into a ring -> its name in tables. The last two are what `publish` is held against.
ROWS = {
    "publish": "Tandem, publish",
    "loan": "Tandem, loan",
    "python": "Tandem from Python",
    "python_ring": "ring in Python",
    "memcpy": "memcpy alone",
    "streaming": "non-temporal stores alone",
}
UNSEEN = "unseen"  # the row of what no ring gets


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


def _measure(plan: Plan) -> Found:
    """Measures every row for every ring."""
    cases = []
    for width, height in SIZES:
        for capacity in CAPACITIES:
            rates: dict[str, list[float]] = {row: [] for row in ROWS if row in plan.rows}
            for _ in range(plan.rounds):
                found = _measure_cpp(f"{plan.prefix}-cpp", width, height, capacity, 4 * plan.seconds)
                for row, measure in (("python", _measure_python), ("python_ring", _measure_python_ring)):
                    if row in rates:
                        found[row] = measure(f"{plan.prefix}-{row}", width, height, capacity, plan.seconds)
                for row, those in rates.items():
                    those.append(found[row])
            cases.append(Case(width, height, capacity, rates))
            print(f"{width} x {height}, {capacity} slots: {plan.rounds} rounds", file=sys.stderr, flush=True)
    found_all = Found(tables=[_table(cases, plan.rounds)], figures={"rings": [asdict(case) for case in cases]})
    if UNSEEN in plan.rows:
        unseen = _measure_unseen(f"{plan.prefix}-{UNSEEN}", plan.seconds)
        found_all.tables.append(_unseen_text(unseen))
        found_all.figures["unseen_ns"] = unseen
    return found_all


def _measure_cpp(name: str, width: int, height: int, capacity: int, seconds: float) -> dict[str, float]:
    sizes = [f"--width={width}", f"--height={height}", f"--capacity={capacity}"]
    command = [str(FRAME_RATES), f"--name={name}", *sizes, f"--seconds={seconds}"]
    rates: dict[str, float] = answer_of(command, timeout_secs=timeout_of(seconds))
    return rates


def _measure_python(name: str, width: int, height: int, capacity: int, seconds: float) -> float:
    config = tandem.FastLaneConfig(width, height, capacity=capacity, metadata_size=64)
    metrics = tandem.FastLaneMetrics(1.0, 2.0, 3.0)
    frame = np.full((height, width, 3), 7, np.uint8)
    with tandem.FastLaneWriter.create(name, config) as writer:
        return _rate(lambda: writer.publish(frame, metrics=metrics, metadata=METADATA), capacity, frame.size, seconds)


def _measure_python_ring(name: str, width: int, height: int, capacity: int, seconds: float) -> float:
    data = bytes([7]) * (width * height * 3)
    foreign = ForeignWriter(name, width, height, 3, capacity, 64)
    try:
        return _rate(lambda: foreign.publish(data, (1.0, 2.0, 3.0), METADATA), capacity, len(data), seconds)
    finally:
        foreign.close()


def _rate(publish: Callable[[], object], capacity: int, frame_bytes: int, seconds: float) -> float:
    """Takes the median turn of some 2 MB, as frame_rates does."""
    for _ in range(capacity):  # every page was touched once
        publish()
    now = time.perf_counter
    writes = min(max((2 << 20) // frame_bytes, 4), 64)
    turns: list[float] = []
    end = now() + seconds
    while not turns or now() < end:
        begin = now()
        for _ in range(writes):
            publish()
        turns.append(now() - begin)
    return writes / statistics.median(turns)


class _Still(gymnasium.Env[Any, Any]):
    """Does nothing, and must not be rendered."""

    render_mode = "rgb_array"
    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)
    results = (np.zeros(1), 1.0, False, False, dict[str, Any]())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.results[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.results

    def render(self) -> Any:
        raise RuntimeError("rendered for nobody")


class _StillVector(VectorEnv[Any, Any, Any]):
    """The same, 64 times."""

    render_mode = "rgb_array"
    num_envs = 64
    results = (np.zeros((64, 1)), np.ones(64), np.zeros(64, np.bool_), np.zeros(64, np.bool_), dict[str, Any]())

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.results[0], {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        return self.results

    def render(self) -> Any:
        raise RuntimeError("rendered for nobody")


def _measure_unseen(name: str, seconds: float) -> dict[str, float]:
    """Measures what `publish_frames(unseen_hz=0)` adds to a step while nobody looks: nanoseconds, of median turns."""
    found = {}
    kinds: dict[str, Callable[[], Any]] = {"an environment": _Still, "64 environments": _StillVector}
    for kind, make in kinds.items():
        published = tandem.publish_frames(make(), name, unseen_hz=0)
        published.reset()
        steps = (make().step, published.step)
        turns: tuple[list[float], list[float]] = ([], [])
        now = time.perf_counter
        end = now() + seconds
        while now() < end:
            for step, times in zip(steps, turns, strict=True):
                begin = now()
                for _ in range(50):
                    step(0)
                times.append((now() - begin) / 50)
        published.close()
        found[kind] = 1e9 * (statistics.median(turns[1]) - statistics.median(turns[0]))
    return found


def _table(cases: Sequence[Case], rounds: int) -> str:
    lines = [[ROWS[row], *(_rate_text(case.median(row)) for case in cases)] for row in cases[0].rates]
    ratios = [f"{case.against_faster_store():.2f}" for case in cases]
    lines.append(["time of publish / of the faster store", *ratios])
    head = ["frames/s", *(f"{case.width}×{case.height}, {case.capacity}" for case in cases)]
    return markdown(f"**Frames published a second** (size, slots): medians of {rounds} rounds", head, lines)


def _unseen_text(unseen: Mapping[str, float]) -> str:
    more = "; ".join(f"{nanos:.0f} ns for {kind}" for kind, nanos in unseen.items())
    return f"`publish_frames(unseen_hz=0)` adds to a step while nobody looks: {more}."


def _rate_text(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.3g} K"


SUITE = Suite(
    name="frames",
    about="frames a second into a frame ring, against bare stores and a ring in Python",
    rows={**ROWS, UNSEEN: "publish_frames around environments while nobody looks"},
    baseline=frozenset({"publish", "memcpy", "streaming"}),
    measure=_measure,
)
