"""A scene in headless Chromium, by software WebGL, and in files; tools/test --with page tests the rest."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures
from tests.web.browser_fixture import browser_fixture, page_fixture, view_fixture  # noqa: F401, fixtures
from tests.web.page_fixture import Page, Trainer, wait_for
from tests.web.scene_samples import assert_as_the_engine, freeze, open_scene, robots, tracks_of


@pytest.fixture(name="trainer")
def trainer_fixture(tmp_path: Path) -> Iterator[Trainer]:
    """Six environments of the sample."""
    with robots(tmp_path, num_envs=6) as training:
        yield training


def test_shows_the_poses_of_each_environment_without_images(page: Page, trainer: Trainer) -> None:
    """Matrices are the engine's; the step of the image goes on; the engine has not rendered."""
    open_scene(page, trainer)
    assert page.text("article .badge") == "LIVE"
    step = int(page.text(".numbers div:first-child dd").replace(",", ""))
    wait_for(lambda: page.text(".numbers div:first-child dd") not in (str(step), "-"), "a later step")
    page.save("scene")
    assert_as_the_engine(freeze(page), set(range(6)))
    assert page.all("canvas.picture:not([hidden])") == []
    assert page.errors() == []


def _recorder(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tandem.scene", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_records_without_a_page(trainer: Trainer, tmp_path: Path) -> None:
    """For some seconds, or until Ctrl-C; without an engine, a folder or good flags it says what it expected."""
    for ending, stop in (("glb", None), ("html", signal.SIGINT)):
        file = tmp_path / f"run.{ending}"
        program = _recorder(trainer.name, f"--save={file}", f"--seconds={60 if stop else 1}")
        if stop:
            signal.sigtimedwait((), 2)
            program.send_signal(stop)
        _, errors = program.communicate()
        assert program.returncode == 0, errors
        assert re.fullmatch(rf"tandem-view: \d+ snapshots of \d\.\d s in {file}\n", errors), errors
    times, _ = tracks_of((tmp_path / "run.glb").read_bytes())
    assert len(times) > 5 and times[-1] > 0.5
    for words, code, text in (
        (["nothing-runs", "--save=x.glb"], 1, "nothing-runs"),
        ([trainer.name, f"--save={tmp_path}/none/x.glb", "--seconds=0.1"], 1, "none/x.glb"),
        ([trainer.name, "--save=x.mp4"], 2, "*.html or *.glb"),
        ([trainer.name, "--save=x.glb", "--seconds=0"], 2, "at most 600"),
    ):
        program = _recorder(*words)
        _, errors = program.communicate()
        assert program.returncode == code and text in errors, errors
