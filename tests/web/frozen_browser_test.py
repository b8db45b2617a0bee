"""A browser that is stopped for more than a minute, while frames come and a run ends. Takes a minute and a half."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tandem.testing.engines import unique_name, watchdog  # noqa: F401, one is a fixture
from tests.web.page_fixture import Page, Trainer, pss_kib, running_view, wait_for
from tests.web.socket_client import SocketClient, cookie_of

_FROZEN_SECS = 75  # the server waits a minute for an answer


def _descendants(pid: int) -> list[int]:
    """Returns the processes that a process has started, and theirs."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text("utf-8", errors="replace").rsplit(")", 1)[1].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, ahead = [], [pid]
    while ahead:
        more = children.get(ahead.pop(), [])
        found += more
        ahead += more
    return found


@contextmanager
def _frozen(page: Page) -> Iterator[None]:
    """Stops all processes of the browser, except the driver."""
    processes = _descendants(page.driver.service.process.pid)
    assert len(processes) > 3
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)


def test_a_frozen_browser_costs_nothing_and_shows_the_present_afterwards() -> None:
    """The server ends its connection and serves others; the browser then shows one run live and the other as lost."""
    page, ending, going_on = Page(), Trainer(unique_name()), Trainer(unique_name())
    try:
        with running_view() as view:
            page.open(view.address)
            for run in (ending, going_on):
                page.open_run(run.name)
            badges = "return [...document.querySelectorAll('article .badge')].map((each) => each.innerText)"
            wait_for(lambda: page.driver.execute_script(badges) == ["LIVE", "LIVE"], "two live images")
            other = SocketClient(view.address, cookie_of(view.address))
            other.send(do="watch", view=1, run=going_on.name, width=160)
            files = Path(f"/proc/{view.process.pid}/fd")
            wait_for(lambda: other.take() and other.pictures > 10, "pictures")
            opened, memory = len(list(files.iterdir())), pss_kib(view.process.pid)
            with _frozen(page):
                end = time.monotonic() + _FROZEN_SECS
                pictures = other.pictures
                ended = False
                while time.monotonic() < end:
                    assert other.take()
                    if not ended and time.monotonic() > end - _FROZEN_SECS / 2:
                        ended = True
                        ending.kill_engine()
                    time.sleep(0.01)
                assert other.pictures - pictures > _FROZEN_SECS
                # The browser's socket is closed, and so are the descriptors of the run that has ended.
                assert len(list(files.iterdir())) < opened
                # The tapes of the last minute grow by ten small pictures a second.
                assert pss_kib(view.process.pid) - memory < 16 * 1024
            steps = going_on.steps
            wait_for(lambda: page.text("#link") == "connected", "a connected page")
            wait_for(lambda: page.driver.execute_script(badges)[1] == "LIVE", "a live image")
            wait_for(lambda: page.driver.execute_script(badges)[0] == "ENDED", "the end of the other run")
            script = "return Number(document.querySelectorAll('article .picture')[1].dataset.step)"
            wait_for(lambda: int(page.driver.execute_script(script)) >= steps, "an image of the present")
            page.save("after-a-freeze")
            other.close()
    finally:
        page.close()
        for run in (ending, going_on):
            run.close()
