"""Jobs of a real daemon in the page: a sweep sorted by its returns, compared, a failed job, and far too many of all."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.telemetry import TrainerClient
from tandem.testing.daemons import Daemon, running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.browser_fixture import browser_fixture  # noqa: F401, a fixture
from tests.web.page_fixture import Page, running_view, wait_for

_TRAINING = """
import json, sys
rate, seed = float(sys.argv[1]), int(sys.argv[2])
for i in range(400):
    reward = rate * i + 5 * seed * (i % 2)
    print(json.dumps({"event_type": "episode", "episode": i, "total_reward": reward, "steps": 20}))
    if i % 10 == 0:
        values = {"train/loss": 1 / (i + 1 + seed), "rate <b>x</b>": rate, "bad": "NaN"}
        print(json.dumps({"event_type": "scalars", "step": 20 * i, "scalars": values}))
"""
_HOSTILE = "<b>x</b> a/b.c \u001b[2J"
_FAILING = f"""
import json, os, sys
attempt = int(os.environ["TANDEM_ATTEMPT"])
for i in range(10 * attempt):
    print(json.dumps({{"event_type": "episode", "episode": i, "total_reward": i, "steps": 1}}))
print(json.dumps({{"event_type": "scalars", "step": 1, "scalars": {{{_HOSTILE!r}: 3e-4}}}}))
sys.stdout.flush()
def solve():
    raise RuntimeError("simulator: solver diverged")
solve()
"""
# A daemon that has ten thousand jobs with a thousand parameters, which the page gets from its own socket.
_CROWD = """
const job = (at) => ({
  run: `crowd${at}`, name: `job ${at}`, state: "TERM", state_text: "TERM", facts: "", reason: "", failure: "",
  remark: "", workers: "", evaluation: "", wants_frames: false, ended: true, unreachable: false, created: at, steps: at,
  episodes: 0, scalars: 0, mean_return: (at * 7919) % 10000, mean_of: 100, steps_per_second: 0,
  episodes_per_second: 0, parameters: {[`p.${at % 1000}/<i>`]: `${at}`, seed: `${at}`}, attempts: []});
const runs = Array.from({length: 10000}, (_, at) => job(at));
const begin = performance.now();
const report = {is: "daemon", all: false, gone: [], head: {problem: "", target: ""}, runs};
window.socket.onmessage({data: JSON.stringify(report)});
setTimeout(() => { window.drawn = performance.now() - begin; }, 150);
"""


@pytest.fixture(name="daemon", scope="module")
def daemon_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with an empty folder, which runs two jobs at once."""
    flags = ("--no_queue=false", "--cpus=2")
    with running_daemon(tmp_path_factory.mktemp("data"), *flags) as running:
        yield running


@pytest.fixture(name="page", scope="module")
def page_fixture(browser: Page, daemon: Daemon) -> Iterator[Page]:
    """The page of a server that may act on that daemon."""
    keep_socket = "const Socket = WebSocket; window.WebSocket = class extends Socket {"
    keep_socket += "constructor(...a) { super(...a); window.socket = this; } };"
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": keep_socket})
    with running_view("--control", f"--daemon_target={daemon.address}") as view:
        browser.open(view.address)
        wait_for(lambda: browser.all("#submit:not([hidden])"), "the form")
        browser.save("jobs-empty")
        yield browser


def _rows(page: Page) -> list[list[str]]:
    """Returns the texts of the list's cells."""
    script = """
    return [...document.querySelectorAll("#runs tr")].map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
    """
    rows: list[list[str]] = page.driver.execute_script(script)
    return rows


def _search(page: Page, text: str) -> None:
    """Searches the list, which has other programs' runs of this machine, too."""
    field = page.all("#search")[0]
    field.send_keys("\ue009a\ue000", "\ue003", text)  # Ctrl+A, backspace


def _sort(page: Page, title: str) -> None:
    next(each for each in page.all("#runs-head button") if each.text == title).click()


def _fill(page: Page, label: str, text: str) -> None:
    fields = page.all("#submit > label")
    field = next(each for each in fields if each.text == label).find_element("tag name", "input")
    field.clear()
    field.send_keys(text)


def test_the_best_job_of_a_sweep_is_in_the_first_row(page: Page, tmp_path: Path) -> None:
    """Six jobs from the form; sorted by return, the best is on the first screen's first row; then they are compared."""
    (tmp_path / "train it.py").write_text(_TRAINING, "utf-8")
    page.set_size(1280, 900)
    page.click("#submit > summary")
    _fill(page, "Command", f"{sys.executable} 'train it.py' {{rate}} {{seed}}")
    _fill(page, "Folder", str(tmp_path))
    _fill(page, "Name", "walker")
    _fill(page, "Grid", "rate=1e-1,0.5,0.3 seed=0..1")
    page.save("jobs-form")
    next(each for each in page.all("#submit button") if each.text == "Submit").click()
    _search(page, "walker")
    wait_for(lambda: [row[2] for row in _rows(page)] == 6 * ["finished"], "six finished jobs")
    page.click("#submit > summary")
    _sort(page, "Return")
    best, *others = _rows(page)
    assert best[1].splitlines()[0] == "walker rate=0.5 seed=1" and best[3:5] == ["0.5", "1"], best
    means = [float(row[5].split()[0]) for row in (best, *others)]
    assert means == sorted(means, reverse=True) and means[0] == 177.25 and best[5].split()[1:] == ["of", "100"]
    button = page.all("#runs button")[0]
    assert 0 < button.location["y"] < 900 - button.size["height"]
    wait_for(lambda: len(page.all("#runs .spark path[d^=M]")) == 6, "six small curves")
    page.save("jobs-list")
    _sort(page, "rate")
    assert [row[3] for row in _rows(page)] == ["0.1", "0.1", "0.3", "0.3", "0.5", "0.5"]
    for box in page.all("#runs input[type=checkbox]"):
        box.click()
    page.save_downloads_in(tmp_path)
    page.click("#compare")
    wait_for(lambda: len(page.all(".page .curve")) == 5, "returns, lengths and three numbers of their own")
    assert page.text(".legend li").splitlines() == ["walker rate=0.5 seed=1", "177.25 of 100"]
    assert "not finite" in page.all(".page .curve")[4].text
    page.save("jobs-compare")
    next(each for each in page.all(".page button") if each.text == "CSV").click()
    wait_for(lambda: (tmp_path / "curves.csv").exists(), "a file")
    lines = (tmp_path / "curves.csv").read_text("utf-8").splitlines()
    assert lines[0] == "run,name,curve,step,episode,time,mean,min,max" and len(lines) > 6 * 100
    assert any(line.split(",")[2] == "train/loss" for line in lines)
    page.press("\ue00c")
    assert page.errors() == []


def test_a_failed_job_says_why_and_shows_its_last_attempt(page: Page, daemon: Daemon) -> None:
    """The exception's last line in list and page, the rest in the log; odd names are text."""
    config: dict[str, Any] = {
        "run_name": _HOSTILE,
        "entry_point": sys.executable,
        "arguments": ["-c", _FAILING],
        "environment": {},
        "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0}},
        "artifacts": {},
        "metadata": {"tandem": {"restart": {"max": 1}}},
    }
    _search(page, "")
    with TrainerClient(daemon.address) as client:
        client.submit(json.loads(json.dumps(config)))
    failure = "RuntimeError: simulator: solver diverged"
    wait_for(lambda: failure in page.run_button("<b>x</b>").text, "the reason in the list")
    page.run_button("<b>x</b>").click()
    wait_for(lambda: len(page.all(".job .curve")) == 3, "its curves")
    assert page.text(".job h2") == _HOSTILE.replace("\u001b", "\\x1b")
    assert page.text(".job strong") == failure
    assert page.all(".job b") == []
    for summary in page.all(".job details > summary"):
        summary.click()
    wait_for(lambda: "in solve\n" in page.text(".job pre"), "lines of the log")
    wait_for(lambda: '"max": 1' in page.text(".job pre[aria-label=Configuration]"), "the configuration")
    assert "0 to 19" in page.text(".job .curve")  # the first attempt had ten episodes
    assert "0.0003 to 0.0003" in page.all(".job .curve")[2].text
    assert len(page.all(".job table tbody tr")) >= 2, "the attempts"
    page.save("jobs-failed")
    page.press("\ue00c")
    assert page.all("#columns.list-only")
    assert page.errors() == []


def test_ten_thousand_jobs_do_not_freeze_the_page(page: Page) -> None:
    """The list shows the first hundred in order; a search finds any."""
    page.driver.execute_script("delete window.drawn;" + _CROWD)
    wait_for(lambda: page.driver.execute_script("return window.drawn"), "a drawn list")
    _search(page, "job")
    wait_for(lambda: "10,000 of" in page.text("#run-count"), "all jobs")
    assert len(_rows(page)) == 100
    if not page.all("[aria-sort=descending]"):
        _sort(page, "Return")
    assert "9,999" in " ".join(_rows(page)[0])
    page.save("jobs-crowd")
    _search(page, "job 4711")
    wait_for(lambda: len(_rows(page)) == 1, "one job")
    _search(page, "job")
    page.set_size(390, 844)
    page.save("jobs-phone")
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= 390
    page.click("#runs button")
    top = "return document.querySelector('.job').getBoundingClientRect().top"
    assert 0 <= page.driver.execute_script(top) < 600, "the job's page is below the list: it is scrolled to"
    assert page.errors() == []
