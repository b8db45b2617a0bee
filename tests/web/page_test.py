"""The page in headless Chromium shows a real engine, and switches it.

Pictures of the page are in the test's outputs: bazel-testlogs/tests/web/page_test/test.outputs.
"""

import os
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.services import SimulationMode
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tests.web.page_fixture import Page, Trainer, View, running_view, wait_for
from tools.testing import pytest_main

# Returns the texts whose contrast to their background is below WCAG AA's: 4.5, or 3 for large texts.
_LOW_CONTRAST = """
const curve = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const channel = (value) => curve(value / 255);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const background = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const low = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || element.getClientRects().length === 0) continue;
  const style = getComputedStyle(element);
  const [a, b] = [luminance(parse(style.color)), luminance(background(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  if (ratio >= (large ? 3 : 4.5)) continue;
  low.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)} ${element.textContent}`);
}
return low;
"""

# Returns the names of controls that a screen reader could not name.
_NAMELESS = """
return [...document.querySelectorAll("button, input, select, textarea, canvas[role]")].filter((element) =>
  !(element.textContent.trim() || element.getAttribute("aria-label") || element.labels?.length || element.title))
  .map((element) => element.outerHTML);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """A browser for all tests."""
    page = Page()
    yield page
    page.close()


@pytest.fixture
def trainer() -> Iterator[Trainer]:
    """A training of four environments with frames."""
    training = Trainer(unique_name())
    yield training
    training.close()


@pytest.fixture
def view() -> Iterator[View]:
    """A server that may act."""
    with running_view("--control") as program:
        yield program


@pytest.fixture
def page(browser: Page, view: View) -> Page:
    """The connected page of that server, at the size of a notebook's screen."""
    browser.set_size(1280, 900)
    browser.open(view.address)
    browser.errors()
    return browser


def _fact(page: Page, name: str) -> str:
    """Returns a number below the image, such as "step"."""
    script = """
    const rows = [...document.querySelectorAll(".numbers div")];
    const row = rows.find((each) => each.children[0].innerText === arguments[0]);
    return row?.children[1].innerText ?? "";
    """
    return str(page.driver.execute_script(script, name))


def _wait_for_other_pixels(page: Page) -> None:
    pixels, step = page.pixels(), page.step()
    wait_for(lambda: page.pixels() != pixels and page.step() > step, "other pixels of a later step")


def test_opens_a_run_and_shows_it_live(page: Page, trainer: Trainer) -> None:
    """Pixels and step change; the state is LIVE; the address has no token any more."""
    assert "token" not in page.driver.current_url
    page.open_run(trainer.name)
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
    for _ in range(3):
        _wait_for_other_pixels(page)
    wait_for(lambda: _fact(page, "steps/s") not in ("-", "0"), "a step rate")
    page.save("tile")
    assert page.errors() == []


def test_a_stopped_training_is_shown_as_old(page: Page, trainer: Trainer) -> None:
    """The state becomes STALE with the age, and LIVE again."""
    page.open_run(trainer.name)
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
    with tandem.Attendant(trainer.name, label="test") as attendant:
        attendant.scene.pause()
        wait_for(lambda: re.match(r"STALE · [1-9]", page.text("article .badge")), "an image that is 1 s old")
        page.save("stale")
        attendant.scene.resume()
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")


def test_an_engine_that_dies_is_reported_and_its_successor_shown(page: Page) -> None:
    """The tile says so, and attaches to the next engine of that name by itself."""
    first = Trainer(unique_name())
    page.open_run(first.name)
    page.click("article .open")
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
    first.kill_engine()
    wait_for(lambda: page.text("article .badge").split(" · ")[0] in ("NO FRAMES", "RECONNECTING"), "a lost run")
    page.save("engine-killed")
    second = Trainer(first.name)
    try:
        wait_for(lambda: page.text("article .badge") == "LIVE", "the next engine's image")
    finally:
        second.close()
    assert page.errors() == []


def test_full_size_has_plots_and_the_engines_panel(page: Page, trainer: Trainer) -> None:
    """A click on the image shows it alone, with its plots, processes and step times."""
    page.open_run(trainer.name)
    page.click("article .open")
    wait_for(lambda: page.all("article.full"), "an image at full size")
    wait_for(lambda: "pid" in page.text("article.full .side"), "the engine's process")
    side = page.text("article.full .side")
    assert "HalfCheetah-v5" in side
    assert "p50, p99" in side
    wait_for(lambda: " to " in page.text("article.full .plot-head + .plot + span"), "a plot's range")
    for _ in range(2):
        page.save(f"full-{page.theme()}")
        page.press("t")
    page.press("\ue00c")  # Escape
    assert not page.all("article.full")
    assert page.errors() == []


def test_a_click_on_an_environment_shows_it_alone(page: Page, trainer: Trainer) -> None:
    """The image then has a quarter of the size, and another click shows all four."""
    page.open_run(trainer.name)
    page.click("article .open")

    def size() -> Any:
        return page.driver.execute_script(
            "const c = document.querySelector('article .picture'); return [c.width, c.height]"
        )

    def label() -> str:
        return str(page.all("article .open")[0].get_attribute("aria-label"))

    # Moving images may be smaller, but the last one becomes sharp.
    with tandem.Attendant(trainer.name, label="test") as attendant:
        attendant.scene.pause()
        wait_for(lambda: size() == [320, 240], "an image of all environments")
        pixels = set()
        for number, place in enumerate(((-0.2, -0.2), (0.2, -0.2), (-0.2, 0.2), (0.2, 0.2))):
            page.click_at("article .picture", *place)
            wait_for(lambda: size() == [160, 120], "one environment")
            assert label() == f"{trainer.name}: environment {number}"
            pixels.add(page.pixels())
            page.click_at("article .picture", *place)
            wait_for(lambda: size() == [320, 240], "all environments")
        assert len(pixels) == 4


def test_freezes_and_scrubs_while_the_run_goes_on(page: Page, trainer: Trainer) -> None:
    """A frozen image stays; the keys show earlier ones; live is the newest again."""
    page.open_run(trainer.name)
    page.click("article .open")
    slider = page.all("article.full input[type=range]")[0]
    wait_for(lambda: int(slider.get_attribute("max")) > 2500, "a tape of more than 2 s")
    page.press(" ")
    wait_for(lambda: page.text("article .badge") == "FROZEN", "a frozen image")
    pixels, step, steps = page.pixels(), page.step(), trainer.steps
    wait_for(lambda: trainer.steps > steps + 100, "a run that goes on")
    assert (page.pixels(), page.step()) == (pixels, step)
    page.press("\ue012")  # left
    wait_for(lambda: page.step() < step, "an earlier image")
    assert "before the newest" in page.text("article .bar")
    earlier = page.step()
    page.press("\ue012")
    wait_for(lambda: page.step() < earlier, "a still earlier image")
    page.save("scrubbed")
    page.press("\ue014")  # right
    wait_for(lambda: page.step() >= earlier, "a later image")
    page.press("l")
    wait_for(lambda: page.step() > step + 100, "the newest image")
    assert page.errors() == []


def test_switches_a_service_off_and_on(page: Page, trainer: Trainer, view: View) -> None:
    """A caller sees Unsupported, then an answer; the server logs both."""
    page.open_run(trainer.name)
    page.click("article .open")
    box = "article.full input[name=camera]"
    wait_for(lambda: page.all(box) and page.all(box)[0].is_selected(), "the camera's switch")
    with tandem.Attendant(trainer.name, label="test") as attendant:
        assert attendant.camera.list() is not None
        page.click(box)

        def is_off() -> bool:
            try:
                attendant.camera.list()
            except tandem.Unsupported:
                return True
            return False

        wait_for(is_off, "a service that is off")
        wait_for(lambda: not page.all(box)[0].is_selected() and page.all(box)[0].is_enabled(), "a switch that is off")
        page.save("service-off")
        page.click(box)
        wait_for(lambda: not is_off(), "a service that is on")
    log = view.end()
    assert f"switch {trainer.name} camera off: done" in log, log
    assert f"switch {trainer.name} camera on: done" in log, log


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
            _wait_for_other_pixels(browser)
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
        _wait_for_other_pixels(browser)
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
        _wait_for_other_pixels(browser)


def test_a_trainer_waits_for_twenty_seconds_and_goes_on(page: Page, trainer: Trainer) -> None:
    """Longer than some time-outs: nothing gives up meanwhile, and the pause is the page's alone to end."""
    page.open_run(trainer.name)
    page.click("article .open")
    buttons = {each.text: each for each in page.all("article.full .side button")}
    with tandem.Attendant(trainer.name, label="test") as attendant:
        buttons["Pause"].click()
        wait_for(attendant.scene.paused, "a paused engine")
        time.sleep(20)
        assert attendant.scene.paused()
        assert "STALE" in page.text("article .badge")
        steps = trainer.steps
        buttons["Resume"].click()
        wait_for(lambda: trainer.steps > steps + 10, "steps again")


def test_saves_the_newest_frame_as_png(page: Page, trainer: Trainer, tmp_path: Path) -> None:
    """The key saves all pixels of the frame, whatever the page shows; a frozen image is saved as it is shown."""
    page.save_downloads_in(tmp_path)
    page.open_run(trainer.name)

    def saved() -> list[Path]:
        return [path for path in tmp_path.glob("*.png") if path.stat().st_size > 0]

    page.press("s")
    (first,) = wait_for(saved, "a file")
    data = first.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (320, 240)
    page.press(" ")
    wait_for(lambda: page.text("article .badge") == "FROZEN", "a frozen image")
    page.press("s")
    wait_for(lambda: f"-{page.step()}.png" in " ".join(path.name for path in saved()), "a file of that step")


def test_searches_the_list_by_keyboard(page: Page, trainer: Trainer) -> None:
    """The slash leads into the search, Enter opens the run that it found."""
    page.run_button(trainer.name)
    page.press("/")
    active: Any = page.driver.switch_to.active_element
    active.send_keys("no such run")
    assert page.all("#runs button") == []
    active.clear()
    active.send_keys(trainer.name[-12:])
    wait_for(lambda: len(page.all("#runs button")) == 1, "one run")
    active.send_keys("\n")
    wait_for(lambda: page.all("article .picture:not([hidden])"), "an image")


def test_fits_a_phone(page: Page, trainer: Trainer) -> None:
    """Nothing is wider than the screen, in the list and at full size."""
    page.set_size(390, 844)
    page.open_run(trainer.name)
    width = "return document.documentElement.scrollWidth"
    assert page.driver.execute_script(width) <= 390
    page.save("phone")
    page.click("article .open")
    wait_for(lambda: "pid" in page.text("article.full .side"), "the panel")
    assert page.driver.execute_script(width) <= 390
    page.save("phone-full")


def test_texts_have_contrast_and_controls_have_names(page: Page, trainer: Trainer) -> None:
    """WCAG AA, in both themes, in the list, at full size and in the help."""
    page.open_run(trainer.name)
    page.click("article .open")
    wait_for(lambda: "pid" in page.text("article.full .side"), "the panel")
    for _ in range(2):
        assert page.driver.execute_script(_LOW_CONTRAST) == []
        page.press("t")
    assert page.driver.execute_script(_NAMELESS) == []
    page.press("?")
    wait_for(lambda: page.all("dialog[open]"), "the help")
    page.save("help")
    page.press("?")


def test_shows_hostile_names_as_text(page: Page) -> None:
    """HTML in a name makes no element, and marks that change the direction of text are escaped."""
    html = unique_name() + '<img src=x onerror="document.title=1">'
    reversed_name = unique_name() + "\u202egpj.exe\x1b[2J"
    config = tandem.FastLaneConfig(width=32, height=32, capacity=4)
    with tandem.FastLaneWriter.create(html, config), tandem.FastLaneWriter.create(reversed_name, config):
        page.run_button("onerror").click()
        wait_for(lambda: page.all("article h2"), "a tile")
        assert page.text("article h2") == html
        assert page.all("img") == []
        page.press("\ue00c")
        button = page.run_button(reversed_name.split("\u202e")[0])
        assert "\\xe2\\x80\\xaegpj.exe\\x1b[2J" in button.text
        assert not button.is_enabled()
        page.save("hostile-names")
    assert page.errors() == []


def test_finds_a_server_that_was_restarted(browser: Page, trainer: Trainer) -> None:
    """The page says that the connection is lost, and connects again by itself."""
    with running_view() as view:
        browser.open(view.address)
        browser.open_run(trainer.name)
        view.process.kill()
        wait_for(lambda: "connection lost" in browser.text("#link"), "a lost connection")
        assert browser.text("article .badge") == "NO CONNECTION"


if __name__ == "__main__":
    pytest_main.run(__file__)
