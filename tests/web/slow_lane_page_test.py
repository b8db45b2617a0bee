"""The page submits, pauses, resumes and cancels a run of a real daemon, and finds a daemon that was killed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.testing.daemons import Daemon, running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import Page, running_view, wait_for

_EVENT = {"event_type": "step", "episode": 0, "step_index": 0, "reward": 1}
_RUN: dict[str, Any] = {
    "run_name": "<b>sleeper</b>",
    "entry_point": "/bin/sh",
    "environment": {"EVENT": json.dumps(_EVENT)},
    "arguments": ["-c", "echo $EVENT; sleep 1000"],
    "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0}},
    "artifacts": {},
}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with an empty data folder."""
    with running_daemon(tmp_path / "data") as running:
        yield running


@pytest.fixture
def page(daemon: Daemon) -> Iterator[Page]:
    """The connected page of a server that may act on that daemon."""
    browser = Page()
    with running_view("--control", f"--daemon_target={daemon.address}") as view:
        browser.open(view.address)
        browser.all("#search")[0].send_keys("sleeper")  # not the engines of this machine's other programs
        yield browser
        browser.close()


def _state(page: Page) -> str:
    return page.text("#runs .badge")


def _submit(page: Page, config: str) -> None:
    page.driver.execute_script(
        "for (const each of document.querySelectorAll('#submit, #submit details')) each.open = true"
    )
    script = "document.querySelector('#submit textarea').value = arguments[0]"
    page.driver.execute_script(script, config)
    next(each for each in page.all("#submit button") if each.text == "Submit JSON").click()


def _open_job(page: Page, config: str) -> None:
    """Submits a run, and opens its page."""
    _submit(page, config)
    page.driver.execute_script("document.querySelector('#submit').open = false")
    page.click("#runs button")
    wait_for(lambda: page.all(".job"), "the job's page")


def _press(page: Page, text: str) -> None:
    button = wait_for(
        lambda: next((each for each in page.all(".job .top button") if each.text == text and each.is_enabled()), None),
        f"the button {text}",
    )
    button.click()


def test_submits_pauses_resumes_and_cancels(page: Page) -> None:
    """Each action changes the shown state; the run's name is shown as text."""
    _open_job(page, json.dumps(_RUN))
    wait_for(lambda: _state(page) == "running", "a run that is executed")
    assert page.text("#runs bdi") == "<b>sleeper</b>"
    page.save("slow-lane")
    _press(page, "Pause")
    wait_for(lambda: _state(page) == "paused", "a paused run")
    _press(page, "Resume")
    wait_for(lambda: _state(page) == "running", "a run that goes on")
    _press(page, "Cancel")
    wait_for(lambda: _state(page) == "cancelled", "a cancelled run")
    assert page.errors() == []


def test_goes_on_after_the_daemon_was_killed(page: Page, daemon: Daemon) -> None:
    """Numbers and curves go on where they were."""
    episode = json.dumps({"event_type": "episode", "episode": 0, "total_reward": 7.25, "steps": 3})
    script = "while :; do echo $EVENT; echo $EPISODE; sleep 0.02; done"
    environment = {**_RUN["environment"], "EPISODE": episode}
    _open_job(page, json.dumps({**_RUN, "environment": environment, "arguments": ["-c", script]}))

    def received() -> int:
        found = re.search(r"([\d,]+) steps", page.text(".job"))
        return int(found[1].replace(",", "")) if found else 0

    wait_for(lambda: received() > 20, "steps")
    wait_for(lambda: "7.25" in page.text(".job .plot-head"), "the curve of returns")
    daemon.kill()
    wait_for(lambda: _state(page) == "unreachable", "a lost daemon")
    before = received()
    daemon.start()
    wait_for(lambda: received() > before + 20, "more steps")
    _press(page, "Cancel")
    wait_for(lambda: _state(page) == "cancelled", "a cancelled run")
    assert page.errors() == []


def _details(page: Page, summary: str) -> Any:
    """Opens a part of the run's card, scrolls to it for pictures, and returns it."""
    script = """
    const part = [...document.querySelectorAll(".job details")].find(
      (each) => each.querySelector("summary").textContent === arguments[0]);
    if (part) part.open = true;
    part?.scrollIntoView();
    return part ?? null;
    """
    return wait_for(lambda: page.driver.execute_script(script, summary), summary)


def test_pages_through_logs(page: Page) -> None:
    """The newest and an earlier part of a log, with its bytes as text."""
    script = "for i in $(seq 3000); do echo \"line $i <b>\" >&2; done; printf '\\033[2J' >&2"
    script += '; for i in $(seq 9000); do echo "more $i" >&2; done'
    _open_job(page, json.dumps({**_RUN, "arguments": ["-c", script]}))
    wait_for(lambda: _state(page) == "finished", "a run that has ended")
    log = _details(page, "Log")
    wait_for(lambda: log.text.rstrip().endswith("more 9000"), "the newest lines")
    buttons = {each.text: each for each in log.find_elements("tag name", "button")}
    for _ in range(9):
        if "line 1 <b>" in log.text:
            break
        before = log.text
        buttons["Earlier"].click()
        wait_for(lambda: log.text != before, "an earlier part")  # noqa: B023, called at once
    assert "line 1 <b>" in log.text
    page.save("slow-lane-log")
    buttons["Newest"].click()
    wait_for(lambda: log.text.rstrip().endswith("more 9000"), "the newest lines again")
    assert page.errors() == []


def test_an_open_log_outlives_the_daemon(page: Page, daemon: Daemon) -> None:
    """The log goes on without a daemon, the actions with the next one; the form keeps its text."""
    script = 'for i in $(seq 300); do echo $EVENT; done; while :; do echo "line" >&2; sleep 0.1; done'
    _open_job(page, json.dumps({**_RUN, "arguments": ["-c", script]}))
    wait_for(lambda: _state(page) == "running", "a run that is executed")
    wait_for(lambda: "300" in page.text(".job"), "all steps")
    log = _details(page, "Log")
    wait_for(lambda: "line" in log.text, "a line of the log")
    page.driver.execute_script("document.querySelector('#submit textarea').value = 'my text'")
    daemon.kill()
    wait_for(lambda: _state(page) == "unreachable", "a lost daemon")
    lines = len(log.text)
    wait_for(lambda: len(log.text) > lines, "more lines, which need no daemon")
    assert log.is_displayed()
    _press(page, "Pause")
    wait_for(lambda: "Start a daemon there" in page.text("#message"), "the reason")
    page.save("daemon-gone")
    daemon.start()
    wait_for(lambda: _state(page) == "running", "the run again")
    form = "return document.querySelector('#submit textarea').value"
    assert page.driver.execute_script(form) == "my text"
    _press(page, "Cancel")
    wait_for(lambda: _state(page) == "cancelled", "a cancelled run")
    assert page.errors() == []


def test_shows_the_reason_of_a_refusal(page: Page) -> None:
    """The daemon's text names the place in the configuration."""
    _submit(page, json.dumps({**_RUN, "resources": {}}))
    wait_for(lambda: "resources" in page.text("#message"), "the daemon's refusal")
    _submit(page, "no JSON")
    wait_for(lambda: "SubmitRun" in page.text("#message"), "the daemon's refusal")


def test_finds_a_daemon_that_was_killed_and_came_back(page: Page, daemon: Daemon) -> None:
    """Meanwhile the page says what to do; the run is the same."""
    _open_job(page, json.dumps(_RUN))
    wait_for(lambda: _state(page) == "running", "a run that is executed")
    daemon.kill()
    wait_for(lambda: "Start a daemon there" in page.text("#daemon"), "the next action")
    daemon.start()
    wait_for(lambda: _state(page) == "running", "the run again")
    _press(page, "Cancel")
    wait_for(lambda: _state(page) == "cancelled", "a cancelled run")
