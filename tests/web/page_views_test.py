"""What the page shows: states of a run, one run at full size, the past, on every screen.

Pictures of the page are in the test's outputs: bazel-testlogs/tests/web/page_views_test/test.outputs.
"""

import os
import re
import signal
import struct
from pathlib import Path
from typing import Any

import tandem
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tests.sdk.services_server import services_server
from tests.web.browser_fixture import (  # noqa: F401, fixtures
    browser_fixture,
    page_fixture,
    trainer_fixture,
    view_fixture,
    wait_for_other_pixels,
)
from tests.web.forwarded_socket import forwarded
from tests.web.page_fixture import Page, Trainer, View, running_view, wait_for

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
    wait_for(lambda: page.text("article .badge") == "ENDED", "an ended run")
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


def test_an_engine_of_the_sdk_is_shown(page: Page, tmp_path: Path) -> None:
    """One in C#: its images, and its services in the panel."""
    engine = Trainer(unique_name(), None, server=services_server(tmp_path))
    try:
        page.open_run(engine.name)
        page.click("article .open")
        wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
        wait_for(lambda: "pid" in page.text("article.full .side"), "the engine's process")
        side = page.text("article.full .side")
        assert "Services" in side and all(name in side for name in ("camera", "telemetry", "own")), side
        page.save("sdk")
    finally:
        engine.close()
    assert page.errors() == []


def test_shows_the_run_of_the_address(page: Page, trainer: Trainer, view: View) -> None:
    """At full size, without a click; the token is no longer in the address."""
    page.open(f"{view.address}&run={trainer.name}")
    wait_for(lambda: page.all("article.full .picture:not([hidden])"), "the run at full size")
    assert "token" not in page.driver.current_url


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


def test_finds_a_server_that_was_restarted(browser: Page, trainer: Trainer, tmp_path: Path) -> None:
    """Through a forwarded socket, as by ssh -L. The training goes on without the server."""
    path = tmp_path / "view.sock"
    with forwarded(path) as port:
        with running_view(path=path) as view:
            browser.open(f"http://localhost:{port}/")
            browser.open_run(trainer.name)
            view.process.kill()
            wait_for(lambda: "connection lost" in browser.text("#link"), "a lost connection")
            assert browser.text("article .badge") == "NO CONNECTION"
        steps = trainer.steps
        wait_for(lambda: trainer.steps > steps + 50, "a training that goes on")
        with running_view(path=path):
            wait_for(lambda: browser.text("article .badge") == "LIVE", "the run again")
            wait_for_other_pixels(browser)


def test_a_stopped_server_holds_no_training(page: Page, trainer: Trainer, view: View) -> None:
    """Afterwards the page shows the present."""
    page.open_run(trainer.name)
    steps = trainer.steps
    os.kill(view.process.pid, signal.SIGSTOP)
    try:
        wait_for(lambda: trainer.steps > steps + 300, "a training that goes on")
    finally:
        os.kill(view.process.pid, signal.SIGCONT)
    wait_for(lambda: page.step() > steps + 300, "an image of the present")
    assert page.errors() == []
