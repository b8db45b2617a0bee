"""Fixtures of tests in a browser: the browser, a training, a server that may act, and its page."""

from collections.abc import Iterator

import pytest

from tandem.testing.engines import unique_name
from tests.web.page_fixture import Page, Trainer, View, running_view, wait_for


@pytest.fixture(name="browser", scope="module")
def browser_fixture() -> Iterator[Page]:
    """A browser for all tests."""
    page = Page()
    yield page
    page.close()


@pytest.fixture(name="trainer")
def trainer_fixture() -> Iterator[Trainer]:
    """A training of four environments with frames."""
    training = Trainer(unique_name())
    yield training
    training.close()


@pytest.fixture(name="view")
def view_fixture() -> Iterator[View]:
    """A server that may act."""
    with running_view("--control") as program:
        yield program


@pytest.fixture(name="page")
def page_fixture(browser: Page, view: View) -> Page:
    """The connected page of that server, at the size of a notebook's screen."""
    browser.set_size(1280, 900)
    browser.open(view.address)
    browser.errors()
    return browser


def wait_for_other_pixels(page: Page) -> None:
    """Waits until the first image shows a later step, with other pixels."""
    pixels, step = page.pixels(), page.step()
    wait_for(lambda: page.pixels() != pixels and page.step() > step, "other pixels of a later step")
