"""Frames of a run on another machine in tandem-view, which reads them by viz/core, as the window does."""

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from slow_lane.testing.publish_pattern import HEIGHT, WIDTH, pattern
from slow_lane.testing.remote_runs import Remote
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.ray.hosts import can_make_hosts
from tests.web.page_fixture import running_view, wait_for
from tests.web.socket_client import SocketClient, cookie_of

_PUBLISH = str(Path(__file__).with_name("publish_pattern.py").absolute())
_MOST_ERROR = 8.0  # of a value on average, after JPEG twice: by the other machine and by tandem-view


@pytest.mark.skipif(not can_make_hosts(), reason="a /dev/shm of its own needs root")
def test_a_relayed_run_is_shown_like_any_other(tmp_path: Path) -> None:
    """The list of runs has it; its view gets the frames and their numbers, and notices its end."""
    with (
        contextlib.closing(Remote(tmp_path, own_memory=True)) as remote,
        running_view(f"--daemon_target=unix:{remote.daemon.data_dir}/daemon.sock") as view,
        contextlib.closing(SocketClient(view.address, cookie_of(view.address))) as page,
    ):
        run_id = remote.submit(_PUBLISH, fast_lane={})
        node = remote.start_node(run_id)
        page.send(do="pong")

        def entry() -> dict[str, object] | None:
            assert page.take()
            runs = page.texts.get("runs", {}).get("runs", [])
            return next((run for run in runs if run_id in str(run)), None)

        wait_for(entry, "the run in the list of runs")
        page.send(do="watch", view=1, run=run_id, width=WIDTH)
        steps: list[int] = []
        while len(set(steps)) < 5:  # the first is still for a while, and comes twice
            page.pictures = 0
            wait_for(lambda: page.take() and page.pictures, "a picture")
            head, file = page.picture
            picture = np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))
            size = WIDTH // picture.shape[1]  # of the squares that are a pixel each: a slow browser gets fewer
            squares = pattern(head["step"]).reshape(HEIGHT // size, size, WIDTH // size, size, 3)
            assert np.abs(picture - squares.mean(axis=(1, 3))).mean() < _MOST_ERROR
            steps.append(head["step"])
        assert steps == sorted(steps)

        def numbers() -> dict[str, Any]:
            assert page.take()
            return dict(page.texts.get("view", {}))

        # They come less often than pictures.
        wait_for(lambda: (now := numbers()).get("state") == "connected" and now["step"] >= steps[-1], "later numbers")
        seen = page.texts["view"]
        assert seen["reward"] == seen["step"] and seen["return"] == -0.5 and seen["step_rate"] == 100
        node.terminate()
        remote.await_end(run_id)
        wait_for(lambda: numbers().get("state") == "fastlane-unavailable", "a view without frames")
