"""What the page does: pause, step and mode of an engine; recordings, also as they fail; all of it by HTTPS.

Pictures of the page are in the test's outputs: bazel-testlogs/tests/web/page_actions_test/test.outputs.
"""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import tandem
from tandem.services import SimulationMode
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures
from tests.web.browser_fixture import (  # noqa: F401, fixtures
    browser_fixture,
    page_fixture,
    trainer_fixture,
    view_fixture,
    wait_for_other_pixels,
)
from tests.web.page_fixture import Page, Trainer, View, running_view, wait_for
from tests.web.tls_client import certificate_flags


def test_pauses_steps_and_resumes_an_engine(page: Page, trainer: Trainer) -> None:
    """The trainer waits while the engine is paused, and goes on."""
    page.open_run(trainer.name)
    page.click("article .open")
    buttons = {each.text: each for each in page.all("article.full .side button")}
    wait_for(lambda: trainer.steps > 10, "steps")
    with tandem.Attendant(trainer.name, label="test") as attendant:
        buttons["Pause"].click()
        wait_for(attendant.scene.paused, "a paused engine")
        steps = trainer.steps
        buttons["Single step"].click()
        wait_for(lambda: trainer.steps > steps, "a step")
        assert attendant.scene.paused()
        page.save("paused")
        steps = trainer.steps
        buttons["Resume"].click()
        wait_for(lambda: trainer.steps > steps + 10, "steps again")
        assert not attendant.scene.paused()


def test_sets_the_pace_of_real_time(page: Page, trainer: Trainer, view: View) -> None:
    """The engine then has the mode and the factor; a factor out of its range is refused with its text."""
    page.open_run(trainer.name)
    page.click("article .open")
    select = "article.full select[aria-label=Mode]"
    factor = "article.full input[type=number]"

    def set_mode(mode: str, value: str) -> None:
        wait_for(lambda: page.all(select), "the modes")
        script = "const [s, v] = arguments; s.value = v; s.dispatchEvent(new Event('change'))"
        page.driver.execute_script(script, page.all(select)[0], mode)
        page.driver.execute_script("arguments[0].value = arguments[1]", page.all(factor)[0], value)
        next(each for each in page.all("article.full .side button") if each.text == "Set mode").click()

    with tandem.Attendant(trainer.name, label="test") as attendant:
        set_mode("realtime", "0.5")
        wait_for(lambda: attendant.scene.realtime_factor() == 0.5, "half of real time")
        assert attendant.scene.simulation_mode() is SimulationMode.REALTIME
        set_mode("realtime", "70")
        wait_for(lambda: "0.1 to 10" in page.text("#message"), "the engine's refusal")
        page.save("real-time")
        set_mode("fast", "1")
        wait_for(lambda: attendant.scene.simulation_mode() is SimulationMode.FAST, "the mode fast")
    assert f"mode {trainer.name} realtime 0.5: done" in view.end()


def test_records_a_run(browser: Page, trainer: Trainer, tmp_path: Path) -> None:
    """The button writes an mp4 file that ffmpeg can read."""
    with running_view("--control", f"--recordings={tmp_path}") as view:
        browser.open(view.address)
        browser.open_run(trainer.name)
        browser.click("article .open")
        button = next(each for each in browser.all("article.full .bar button") if each.text == "Record")
        button.click()
        wait_for(lambda: button.text == "Stop recording", "a recording")
        browser.save("recording")
        for _ in range(8):
            wait_for_other_pixels(browser)
        button.click()
        wait_for(lambda: "Saved" in browser.text("#message"), "a saved recording")
    (file,) = tmp_path.glob("*.mp4")
    command = ["ffmpeg", "-loglevel", "error", "-i", str(file), "-f", "framemd5", "-"]
    frames = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    different = {line.split(",")[-1] for line in frames if not line.startswith("#")}
    assert len(different) >= 8, frames


def _child_of(pid: int) -> int:
    """Returns the pid of the only child; 0: none."""
    children = (Path(f"/proc/{pid}/task") / str(pid) / "children").read_text("ascii").split()
    return int(children[0]) if children else 0


def _start_recording(browser: Page, run: str) -> Any:
    """Opens a run and records it; returns the button."""
    browser.open_run(run)
    browser.click("article .open")
    button = next(each for each in browser.all("article.full .bar button") if each.text == "Record")
    button.click()
    wait_for(lambda: button.text == "Stop recording", "a recording")
    return button


def test_an_ffmpeg_that_is_killed_ends_the_recording_only(browser: Page, trainer: Trainer, tmp_path: Path) -> None:
    """The page says so, and the image goes on."""
    with running_view("--control", f"--recordings={tmp_path}") as view:
        browser.open(view.address)
        button = _start_recording(browser, trainer.name)
        os.kill(wait_for(lambda: _child_of(view.process.pid), "ffmpeg"), signal.SIGKILL)
        wait_for(lambda: "signal 9" in browser.text("article .error"), "the reason")
        assert button.text == "Record"
        browser.save("ffmpeg-killed")
        wait_for_other_pixels(browser)
    assert len(list(tmp_path.glob("*.mp4"))) == 1


def test_a_full_disk_ends_the_recording_only(browser: Page, trainer: Trainer, tmp_path: Path) -> None:
    """The page has the reason, with ffmpeg's text; the file is playable up to there, or empty."""
    script = f'mount -t tmpfs -o size=64k none "{tmp_path}" && exec "$@"'
    alone = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    with running_view("--control", f"--recordings={tmp_path}", before=alone) as view:
        browser.open(view.address)
        _start_recording(browser, trainer.name)
        wait_for(lambda: "No space left" in browser.text("article .error"), "the reason")
        browser.save("disk-full")
        wait_for_other_pixels(browser)


def test_a_trainer_waits_for_twenty_seconds_and_goes_on(page: Page, trainer: Trainer) -> None:
    """Longer than some time-outs: nothing gives up meanwhile."""
    page.open_run(trainer.name)
    page.click("article .open")
    buttons = {each.text: each for each in page.all("article.full .side button")}
    with tandem.Attendant(trainer.name, label="test") as attendant:
        buttons["Pause"].click()
        wait_for(attendant.scene.paused, "a paused engine")
        steps = trainer.steps
        time.sleep(20)
        assert attendant.scene.paused()
        assert trainer.steps <= steps + 1  # the result of one may have been on its way
        assert "STALE" in page.text("article .badge")
        steps = trainer.steps
        buttons["Resume"].click()
        wait_for(lambda: trainer.steps > steps + 10, "steps again")


def test_pictures_and_actions_pass_through_https(trainer: Trainer, tmp_path: Path) -> None:
    """As without encryption."""
    page = Page(accepts_any_certificate=True)
    try:
        with running_view("--control", *certificate_flags(tmp_path)) as view:
            assert view.address.startswith("https://127.0.0.1:")
            page.open(view.address)
            page.open_run(trainer.name)
            page.click("article .open")
            wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
            wait_for_other_pixels(page)
            box = "article.full input[name=camera]"
            wait_for(lambda: page.all(box)[0].is_selected(), "the camera's switch")
            page.click(box)
            wait_for(lambda: page.all(box)[0].is_enabled() and not page.all(box)[0].is_selected(), "a switch")
            assert page.errors() == []
            assert "camera off: done" in view.end()
    finally:
        page.close()
