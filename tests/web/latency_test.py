"""How old a picture is when the page has drawn it: on this machine, and behind a slow line.

Run it by hand on an idle machine: bazel test //tests/web:latency_test --test_output=all --test_arg=-s
"""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
import pytest

import tandem
from tests.web.page_fixture import Page, running_view, wait_for
from tests.web.slow_line import SlowLine
from tools.testing import pytest_main

_WIDTH, _HEIGHT, _HZ = 640, 480, 30
_WARM_UP_SECS, _SECS = 10.0, 20.0

# Collects, for each drawn picture, its step and the time since 1970 in milliseconds.
_OBSERVE = """
window.drawn = [];
const canvas = document.querySelector("article .picture");
new MutationObserver(() => {
  window.drawn.push([Number(canvas.dataset.step), performance.timeOrigin + performance.now()]);
}).observe(canvas, { attributes: true, attributeFilter: ["data-step"] });
"""


class _Writer:
    """Publishes moving noise, which is hard to compress, and keeps the time of each step."""

    def __init__(self) -> None:
        self.run = f"latency-{uuid.uuid4().hex}"
        self.published: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _publish(self) -> None:
        config = tandem.FastLaneConfig(width=_WIDTH, height=_HEIGHT, capacity=8, metadata_size=64)
        rng = np.random.default_rng(0)
        # As large as a rendered picture: about 50 KB at quality 75.
        tiles = rng.integers(0, 255, (_HEIGHT // 8, _WIDTH // 8, 3), np.uint8)
        picture = tiles.repeat(8, axis=0).repeat(8, axis=1)
        with tandem.FastLaneWriter.create(self.run, config) as writer:
            step = 0
            while not self._over.wait(1 / _HZ):
                step += 1
                frame = np.roll(picture, 3 * step, axis=1)
                self.published[step] = time.time()
                writer.publish(frame, metadata=json.dumps({"step": step}))

    def close(self) -> None:
        self._over.set()
        self._thread.join()


@contextmanager
def _page_at(address: str, run: str) -> Iterator[Page]:
    page = Page()
    try:
        page.open(address)
        page.open_run(run)
        page.click("article .open")
        yield page
    finally:
        page.close()


def _ages(page: Page, writer: _Writer) -> list[float]:
    """Returns the ages, in seconds, of the pictures that are drawn in the measured time."""
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
    time.sleep(_WARM_UP_SECS)
    page.driver.execute_script(_OBSERVE)
    time.sleep(_SECS)
    drawn = page.driver.execute_script("return window.drawn")
    return [at / 1e3 - writer.published[step] for step, at in drawn]


@pytest.fixture
def writer() -> Iterator[_Writer]:
    """A writer of 640x480 at 30/s."""
    publishing = _Writer()
    yield publishing
    publishing.close()


def _print(capsys: pytest.CaptureFixture[str], what: str, ages: list[float]) -> None:
    p50, p99 = np.quantile(ages, [0.5, 0.99]) * 1e3
    with capsys.disabled():
        rate = len(ages) / _SECS
        print(
            f"\n{what}: {rate:.1f} pictures/s; age p50 {p50:.0f} ms, p99 {p99:.0f} ms, at most {max(ages) * 1e3:.0f} ms"
        )


def test_on_this_machine_a_picture_is_young(writer: _Writer, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the pictures are drawn within 60 ms of their publication."""
    with running_view() as view, _page_at(view.address, writer.run) as page:
        ages = _ages(page, writer)
    _print(capsys, "this machine", ages)
    assert np.median(ages) < 0.06


def test_behind_a_slow_line_no_picture_is_older_than_a_second(
    writer: _Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 Mbit/s, and 100 ms in each direction: pictures become small and fewer."""
    with running_view() as view:
        parts = urlsplit(view.address)
        line = SlowLine(parts.port or 0, bytes_per_second=125_000, delay_secs=0.1)
        with line.run() as port, _page_at(f"http://127.0.0.1:{port}/?{parts.query}", writer.run) as page:
            ages = _ages(page, writer)
            page.save("slow-line")
    _print(capsys, "1 Mbit/s, 100 ms", ages)
    assert len(ages) > _SECS
    assert max(ages) < 1


if __name__ == "__main__":
    pytest_main.run(__file__)
