"""A worker that publishes numbered frames, 100 a second, until it is ended; also the frames that a test expects.

Its working directory has two files. `watched`: "1" while a viewer is attached, "0" while none is. `published`: the
latest step.
"""

import os
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tandem

HEIGHT, WIDTH = 48, 64


def pattern(step: int) -> NDArray[np.uint8]:
    """Returns the frame of a step, uint8[48, 64, 3]: slopes, which JPEG keeps well, and a number as brightness."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    colours = np.stack([x * 2 + step % 100, y * 3 + step % 50, np.full_like(x, step % 200)], axis=-1)
    return colours.astype(np.uint8)


def main() -> None:
    """Publishes."""
    config = tandem.fastlane.FastLaneConfig(width=WIDTH, height=HEIGHT, capacity=4, metadata_size=64)
    watched = Path("watched")
    published = os.open("published", os.O_CREAT | os.O_WRONLY)
    with tandem.fastlane.FastLaneWriter.create(os.environ["TANDEM_RUN_ID"], config) as writer:
        before = None
        step = 0
        while True:
            step += 1
            os.pwrite(published, b"%12d" % step, 0)
            metrics = tandem.fastlane.FastLaneMetrics(last_reward=step, rolling_return=-0.5, step_rate_hz=100)
            writer.publish(pattern(step), metrics=metrics, metadata=f'{{"step": {step}}}')
            if (now := writer.has_reader()) != before:
                watched.write_text(str(int(now)), "ascii")
                before = now
            time.sleep(0.01)


if __name__ == "__main__":
    main()
