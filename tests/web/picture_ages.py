"""How old the pictures are that the page draws: a run that publishes 640x480 at 30/s, and the times of both ends."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import tandem
from tests.web.page_fixture import Page, wait_for

_WIDTH, _HEIGHT, _HZ = 640, 480, 30
_WARM_UP_SECS, SECS = 10.0, 20.0

# Collects, for each drawn picture, its step and the time since 1970 in milliseconds.
_OBSERVE = """
window.drawn = [];
const canvas = document.querySelector("article .picture");
new MutationObserver(() => {
  window.drawn.push([Number(canvas.dataset.step), performance.timeOrigin + performance.now()]);
}).observe(canvas, { attributes: true, attributeFilter: ["data-step"] });
"""


class Writer:
    """Publishes moving noise, which is hard to compress, and keeps the time of each step.

    Attributes:
      run: The name of its frames.
      published: For each step, the time since 1970 in seconds.
    """

    def __init__(self) -> None:
        """Starts to publish, in a thread."""
        self.run = f"latency-{uuid.uuid4().hex}"
        self.published: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _publish(self) -> None:
        config = tandem.fastlane.FastLaneConfig(width=_WIDTH, height=_HEIGHT, capacity=8, metadata_size=64)
        rng = np.random.default_rng(0)
        # As large as a rendered picture: about 50 KB at quality 75.
        tiles = rng.integers(0, 255, (_HEIGHT // 8, _WIDTH // 8, 3), np.uint8)
        picture = tiles.repeat(8, axis=0).repeat(8, axis=1)
        with tandem.fastlane.FastLaneWriter.create(self.run, config) as writer:
            step = 0
            while not self._over.wait(1 / _HZ):
                step += 1
                frame = np.roll(picture, 3 * step, axis=1)
                self.published[step] = time.time()
                writer.publish(frame, metadata=json.dumps({"step": step}))

    def close(self) -> None:
        """Ends the frames."""
        self._over.set()
        self._thread.join()


@contextmanager
def page_at(address: str, run: str, **options: bool) -> Iterator[Page]:
    """Opens a run at full size, in a browser of its own; `options` are those of Page."""
    page = Page(**options)
    try:
        page.open(address)
        page.open_run(run)
        page.click("article .open")
        yield page
    finally:
        page.close()


def ages_of(page: Page, writer: Writer) -> list[float]:
    """Returns the ages, in seconds, of the pictures that are drawn in the measured time."""
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
    time.sleep(_WARM_UP_SECS)
    page.driver.execute_script(_OBSERVE)
    time.sleep(SECS)
    drawn = page.driver.execute_script("return window.drawn")
    return [at / 1e3 - writer.published[step] for step, at in drawn]


def print_ages(capsys: pytest.CaptureFixture[str], what: str, ages: list[float]) -> None:
    """Prints the rate of the drawn pictures, and their ages."""
    p50, p99 = np.quantile(ages, [0.5, 0.99]) * 1e3
    with capsys.disabled():
        rate = len(ages) / SECS
        print(
            f"\n{what}: {rate:.1f} pictures/s; age p50 {p50:.0f} ms, p99 {p99:.0f} ms, at most {max(ages) * 1e3:.0f} ms"
        )
