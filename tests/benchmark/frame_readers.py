"""Processes that read a run's frames, for the suite `frames`; run as a program, it is one of them.

frame_readers.py reader RUN HZ    # FastLaneReader.latest_frame, HZ times a second
frame_readers.py page RUN PROGRAM # tandem-view's page, drawn at once, without a browser
frame_readers.py poses RUN PROGRAM # the same page in 3D
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tandem
from tandem.testing.engines import start_python
from tests.benchmark.rows import Case, Figures, Row, turns, us
from tests.web.socket_client import SocketClient, cookie_of
from viz.testing.virtual_display import virtual_display

_VIEW = Path(__file__).parents[2] / "viz/web/tandem-view"
_WINDOW = Path(__file__).parents[2] / "viz/viewer/viewer"
_STARTED_SECS, _BLUE = 5, 77  # the window shows frames then; their blue, which no other pixel of it has
_SIZES = ((84, 84), (640, 480), (1920, 1080))
_SLOTS = 8
# A second is long enough for percentiles; a trainer publishes at most so often.
_HZ = 60.0
_TRAINED, _SHOWN_SIZE = 64, (80, 60)  # environments, and pixels of each
_METADATA = b'{"step":123456,"envs":[0,1,2,3]}'


def cases() -> Iterator[Case]:
    """Returns a case for each size of a frame, and one with an engine."""
    for size in _SIZES:
        rows = [
            Row("alone", "Tandem from Python, without a reader", turns(_published, size, ())),
            Row("reader_1hz", "Tandem, a reader at 1 Hz", turns(_published, size, ("reader", "1")), ("alone",)),
            Row("reader_60hz", "Tandem, a reader at 60 Hz", turns(_published, size, ("reader", "60")), ("alone",)),
            Row("page", "Tandem, the page open", turns(_published, size, ("page", str(_VIEW))), ("alone",)),
        ]
        columns = ("flood, K frames/s", "at 60/s: p50 us", "at 60/s: p99 us")
        yield Case(
            f"Frames of {size[0]} × {size[1]} published while others read", rows, columns, quick=size == (640, 480)
        )

    shown = [
        Row("unwatched", "Tandem, no page", turns(_trained, ())),
        Row("images", "Tandem, the page shows images", turns(_trained, ("page", str(_VIEW)))),
        Row("poses", "Tandem, the page gets poses", turns(_trained, ("poses", str(_VIEW))), ("images",)),
    ]
    window = Row("window", "Tandem, the window shows it", turns(_window))
    yield Case(f"Frames of 640 × 480, {_HZ:g} a second: their age on the screen", [window], quick=False)
    title = f"{_TRAINED} HalfCheetahs stepped while a page shows all of them"
    yield Case(title, shown, ("shown/s", "K steps/s"), quick=False)


def _trained(reader: tuple[str, ...], name: str, seconds: float) -> Figures:
    options = tandem.FrameOptions(_SHOWN_SIZE, envs="all")
    weights = np.random.default_rng(0).normal(size=(17, 6)).astype(np.float32)
    with (
        tandem.launch_engine("HalfCheetah-v5", num_envs=_TRAINED, name=name, threads=2, frames=options) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
        _reading(name, reader) as process,
    ):
        obs, exchanges, begin = client.reset(seed=0), 0, time.perf_counter()
        while time.perf_counter() < begin + 10 * seconds:
            obs, *_ = client.step(np.tanh(obs @ weights))
            exchanges += 1
        passed, shown = time.perf_counter() - begin, 0
        if process is not None:
            process.terminate()
            shown = int(process.communicate()[0])
    return {"shown/s": shown / passed, "K steps/s": exchanges * _TRAINED / passed / 1e3}


def _published(size: tuple[int, int], reader: tuple[str, ...], name: str, seconds: float) -> Figures:
    width, height = size
    frame = np.full((height, width, 3), 7, np.uint8)
    metrics = tandem.fastlane.FastLaneMetrics(1.0, 2.0, 3.0)
    config = tandem.fastlane.FastLaneConfig(width, height, capacity=_SLOTS, metadata_size=64)
    with tandem.fastlane.FastLaneWriter.create(name, config) as writer, _reading(name, reader):

        def publish() -> None:
            writer.publish(frame, metrics=metrics, metadata=_METADATA)

        for _ in range(2 * _SLOTS):  # touches every page
            publish()
        frames, begin = 0, time.perf_counter()
        while time.perf_counter() < begin + seconds:
            publish()
            frames += 1
        rate = frames / (time.perf_counter() - begin)
        times, end = [], time.perf_counter() + 4 * seconds
        while (begin := time.perf_counter()) < end:
            publish()
            times.append(time.perf_counter() - begin)
            time.sleep(1 / _HZ)
    p50, p99 = np.percentile(times, [50, 99]) * 1e6
    return {"flood, K frames/s": rate / 1e3, "at 60/s: p50 us": p50, "at 60/s: p99 us": p99}


def _window(name: str, seconds: float) -> Figures:
    """Measures from a frame's publication to its colour in the memory of the X server, which is a file."""
    published, ages, at, seen = list[float](), list[float](), (0, 0), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        virtual_display(1400, 1000, "-fbdir", folder) as display,
        tandem.fastlane.FastLaneWriter.create(name, tandem.fastlane.FastLaneConfig(640, 480)) as writer,
        subprocess.Popen([_WINDOW, f"--run={name}", "--nodaemon"], env={**os.environ, "DISPLAY": display}) as viewer,
    ):
        file = np.memmap(Path(folder) / "Xvfb_screen0", np.uint8, "r")
        head = file[:100].view(">u4")  # of the X Window Dump format: sizes of the head, a line, and the colours
        screen = file[head[0] + 12 * head[19] :].view("<u4").reshape(-1, head[12] // 4)
        begin = time.perf_counter()
        while (count := len(published)) < _HZ * (_STARTED_SECS + 10 * seconds):
            if time.perf_counter() >= begin + count / _HZ:
                if count == _HZ * _STARTED_SECS:
                    rows, columns = np.nonzero((screen & 0xFF) == _BLUE)
                    at, seen = (rows[len(rows) // 2], columns[len(columns) // 2]), 0
                published.append(time.perf_counter())
                writer.publish(np.full((480, 640, 3), (count & 255, count >> 8, _BLUE), np.uint8))
            pixel = int(screen[at])
            if pixel != seen and seen and pixel & 0xFF == _BLUE:
                ages.append(time.perf_counter() - published[pixel >> 16 & 255 | pixel & 0xFF00])
            seen = pixel
            time.sleep(0.0005)
        viewer.terminate()
    shown = us([1e9 * age for age in ages])
    return {column.replace("us", "ms"): micros / 1e3 for column, micros in shown.items()}


@contextlib.contextmanager
def _reading(name: str, reader: tuple[str, ...]) -> Iterator[subprocess.Popen[str] | None]:
    """Runs a process that reads the frames; a page prints at the end how many it got. None: there is no reader."""
    if not reader:
        yield None
        return
    kind, argument = reader
    process = start_python(Path(__file__), kind, name, argument)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line != "reads\n":
            _, error = process.communicate()
            raise RuntimeError(f"expected a {kind} that reads, found {error}")
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate()


def _read(name: str, hz: float) -> None:
    with tandem.FastLaneReader.attach(name) as frames:
        print("reads", flush=True)
        while True:
            frames.latest_frame()
            time.sleep(1 / hz)


def _draw(kind: str, name: str, program: str) -> None:
    command = [program, "--listen=127.0.0.1:0", "--daemon_target="]
    view = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert view.stdout is not None
        address = view.stdout.readline().strip()
        browser = SocketClient(address, cookie_of(address))
        browser.send(do="watch", view=1, run=name, width=640)
        if kind == "poses":
            browser.send(do="scene", view=1, envs=list(range(_TRAINED)))
        begun: int | None = None  # the pictures before the measurement
        while True:
            select.select([browser], [], [])
            browser.take()
            if begun is None and "view" in browser.texts and (kind == "page" or browser.pictures > 0):
                begun = browser.pictures
                print("reads", flush=True)
    finally:
        print(browser.pictures - (begun or 0), flush=True)
        view.terminate()
        view.wait()


def main() -> None:
    """Reads until it is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the page's server is ended, too
    kind, name, argument = sys.argv[1:]
    if kind == "reader":
        _read(name, float(argument))
    else:
        _draw(kind, name, argument)


if __name__ == "__main__":
    main()
