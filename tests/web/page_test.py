"""The page in headless Chromium shows a real engine, and switches it; tools/test --with page tests the rest."""

import tandem
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tests.web.browser_fixture import (  # noqa: F401, fixtures
    browser_fixture,
    page_fixture,
    trainer_fixture,
    view_fixture,
    wait_for_other_pixels,
)
from tests.web.page_fixture import Page, Trainer, View, wait_for


def _fact(page: Page, name: str) -> str:
    """Returns a number below the image, such as "step"."""
    script = """
    const rows = [...document.querySelectorAll(".numbers div")];
    const row = rows.find((each) => each.children[0].innerText === arguments[0]);
    return row?.children[1].innerText ?? "";
    """
    return str(page.driver.execute_script(script, name))


def test_opens_a_run_and_shows_it_live(page: Page, trainer: Trainer) -> None:
    """Pixels and step change; the state is LIVE; the address has no token any more."""
    assert "token" not in page.driver.current_url
    page.open_run(trainer.name)
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
    for _ in range(3):
        wait_for_other_pixels(page)
    wait_for(lambda: _fact(page, "steps/s") not in ("-", "0"), "a step rate")
    page.save("tile")
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


def test_shows_hostile_names_as_text(page: Page) -> None:
    """HTML in a name makes no element, and marks that change the direction of text are escaped."""
    html = unique_name() + '<img src=x onerror="document.title=1">'
    reversed_name = unique_name() + "\u202egpj.exe\x1b[2J"
    config = tandem.fastlane.FastLaneConfig(width=32, height=32, capacity=4)
    with (
        tandem.fastlane.FastLaneWriter.create(html, config),
        tandem.fastlane.FastLaneWriter.create(reversed_name, config),
    ):
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
