"""Rows of google-benchmark: frames into a frame ring, and messages through an RPC ring."""

import time
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import tandem
from tests.benchmark import frame_readers
from tests.benchmark.google_benchmark import run_benchmark
from tests.benchmark.rows import Case, Figures, Row, Suite, turns, us
from tests.interop.foreign_fast_lane import ForeignWriter

_RINGS = ((84, 84, 8), (84, 84, 128), (640, 480, 8), (640, 480, 32), (1920, 1080, 4))  # width, height, slots
# What MOSAIC's page says of a ring in Python on its own machine: CPython 3.11, Ubuntu 22.04, ERYING Polestar Z790.
_MOSAIC: dict[tuple[int, int, int], Figures] = {
    (84, 84, 8): {"K frames/s": 354, "p50 us": 2.9, "p99 us": 4.8},
    (640, 480, 8): {"K frames/s": 21.689, "p50 us": 46},
}
_NOTHING = np.zeros(1)
_METADATA = b'{"step":123456,"envs":[0,1,2,3]}'


def _frames(way: str, ring: tuple[int, int, int], name: str, seconds: float) -> Figures:
    benchmark = "/".join(map(str, (way, *ring)))
    found = run_benchmark("frames_benchmark", benchmark, seconds, TANDEM_BENCHMARK_NAME=name)
    return {"K frames/s": found["items_per_second"] / 1e3} | {column: found[column] for column in ("p50 us", "p99 us")}


def _python_frames(ring: tuple[int, int, int], name: str, seconds: float) -> Figures:
    width, height, slots = ring
    config = tandem.fastlane.FastLaneConfig(width, height, capacity=slots, metadata_size=64)
    metrics = tandem.fastlane.FastLaneMetrics(1.0, 2.0, 3.0)
    frame = np.full((height, width, 3), 7, np.uint8)
    with tandem.fastlane.FastLaneWriter.create(name, config) as writer:
        return _rate(lambda: writer.publish(frame, metrics=metrics, metadata=_METADATA), slots, seconds)


def _foreign_frames(ring: tuple[int, int, int], name: str, seconds: float) -> Figures:
    width, height, slots = ring
    data = bytes([7]) * (width * height * 3)
    foreign = ForeignWriter(name, width, height, 3, slots, 64)
    try:
        return _rate(lambda: foreign.publish(data, (1.0, 2.0, 3.0), _METADATA), slots, seconds)
    finally:
        foreign.close()


def _rate(publish: Callable[[], object], slots: int, seconds: float) -> Figures:
    for _ in range(2 * slots):  # touches every page
        publish()
    frames, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        publish()
        frames += 1
    rate = {"K frames/s": frames / (time.perf_counter() - began) / 1e3}
    return rate | us([1e9 * nanos for nanos in timeit.repeat(publish, number=1, repeat=4000)])


def _frame_cases() -> Iterator[Case]:
    stores = ("memcpy", "streaming")
    for ring in _RINGS:
        width, height, slots = ring
        rows = [
            Row("publish", "Tandem, publish", turns(_frames, "publish", ring), stores),
            Row("loan", "Tandem, loan", turns(_frames, "loan", ring), stores),
            Row("python", "Tandem from Python", turns(_python_frames, ring), stores),
            Row("python_ring", "ring in Python", turns(_foreign_frames, ring), stores),
            Row("memcpy", "memcpy alone", turns(_frames, "memcpy", ring)),
            Row("streaming", "non-temporal stores alone", turns(_frames, "streaming", ring)),
        ]
        if figures := _MOSAIC.get(ring):
            rows.append(Row("published", "MOSAIC's page, its machine", turns(lambda found, *_: found, figures)))
        title = f"Frames of {width} × {height} into {slots} slots, by the faster store"
        yield Case(title, rows, ("K frames/s",), quick=(width, slots) in ((84, 8), (640, 32)))
    yield Case(
        "publish_frames(unseen_hz=0) without a viewer", [Row("unseen", "Tandem, an environment", turns(_unseen))]
    )


class _Still(gymnasium.Env[Any, Any]):
    """An environment that does nothing and cannot be rendered."""

    render_mode = "rgb_array"
    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return _NOTHING, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return _NOTHING, 1.0, False, False, {}


def _unseen(name: str, seconds: float) -> Figures:
    """Measures the time that publish_frames adds to a step while no viewer is open."""
    published = tandem.publish_frames(_Still(), name, unseen_hz=0)
    published.reset()
    nanos = []
    steps: list[Callable[[Any], object]] = [published.step, _Still().step]
    for step in steps:
        times = timeit.repeat(partial(step, 0), number=50, repeat=max(10, round(20_000 * seconds)))
        nanos.append(1e9 * float(np.median(times)) / 50)
    published.close()
    return {"ns added to a step": nanos[0] - nanos[1]}


def _messages(channel: str, size: int, name: str, seconds: float) -> Figures:
    flood = run_benchmark("messages_benchmark", f"{channel}/{size}", seconds)
    paced = run_benchmark("messages_benchmark", f"{channel}/{size}/paced", seconds)
    latencies = {f"at 10,000 a second: {column}": float(paced[column]) for column in ("p50 us", "p99 us")}
    return {"flood, M messages/s": flood["items_per_second"] / 1e6} | latencies


def _message_case(size: int) -> Case:
    def row(key: str, label: str, channel: str) -> Row:
        return Row(key, label, turns(_messages, channel, size), ("spsc",))

    rows = [
        *(row(f"ring_{wait}", f"Tandem's ring, {wait}", f"ring/{wait}") for wait in ("spin", "adaptive", "block")),
        row("envelopes", "Tandem, packed and verified envelopes", "envelopes"),
        row("spsc", "textbook queue of one reader and one writer", "spsc"),
        row("pipe", "pipe", "pipe"),
    ]
    return Case(f"Messages of {size} bytes, by the textbook queue", rows, ("flood, M messages/s",))


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "frames",
            "frames a second into a frame ring, compared with bare stores and a ring in Python",
            [*_frame_cases(), *frame_readers.cases()],
            __name__,
        ),
        Suite(
            "messages",
            "messages through an RPC ring, compared with other queues between two processes",
            [_message_case(64), _message_case(4096)],
            __name__,
        ),
    )
}
