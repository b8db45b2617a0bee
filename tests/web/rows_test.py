"""Figures of the page's tables, with ten million stored steps: the time to a page, and what reading costs the daemon.

By hand: bazel test //tests/web:rows_test --test_output=all --test_arg=-s. ROWS=100000 shortens it.
"""

import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.telemetry import TrainerClient
from tandem.testing.daemons import Daemon, running_daemon
from tests.web.page_fixture import View, running_view, wait_for
from tests.web.socket_client import SocketClient, cookie_of
from tools.testing import pytest_main

_ROWS = int(os.environ.get("ROWS", "10000000"))
_PAGE = 50
_PAGE_SECS = 0.3  # the limits
_FILTER_SECS = 1.0
_LEAST_SHARE = 0.9
_STEP = {"event_type": "step", "episode": 3, "step_index": 7, "reward": 0.25}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with an empty data folder."""
    with running_daemon(tmp_path / "data") as running:
        yield running


@pytest.fixture
def view(daemon: Daemon) -> Iterator[View]:
    """A server for that daemon's runs."""
    with running_view("--control", f"--daemon_target={daemon.address}") as program:
        yield program


class _Table:
    """Questions of a page about the daemon's tables."""

    def __init__(self, view: View) -> None:
        self._client = SocketClient(view.address, cookie_of(view.address))
        self._asked = 0
        self._client.send(do="daemon", on=True)

    def _ask(self, kind: str, **message: Any) -> Any:
        self._asked += 1
        self._client.send(**message, id=self._asked)
        return wait_for(self._answer(kind), f"the answer to {message}")

    def _answer(self, kind: str) -> Any:
        def answer() -> Any:
            assert self._client.take()
            found = self._client.texts.get(kind)
            return found if found is not None and found["id"] == self._asked else None

        return answer

    def submit(self, rows: int) -> str:
        """Submits a run that prints steps, and returns its id."""
        config = {
            "run_name": f"{rows} rows",
            "entry_point": "/usr/bin/awk",
            "arguments": [f'BEGIN {{ for (i = 0; i < {rows}; ++i) print ENVIRON["STEP"] }}'],
            "environment": {"STEP": json.dumps(_STEP)},
            "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0}},
            "artifacts": {"persist_logs": False},
        }
        done = self._ask("done", do="act", what="submit", text=json.dumps(config))
        assert done["error"] == "", done
        return str(done["text"].removeprefix("Submitted "))

    def stored(self, run: str) -> int:
        """Returns the number of a run's stored steps; -1: it has not ended."""
        assert self._client.take()
        for each in self._client.texts.get("daemon", {"runs": []})["runs"]:
            if each["run"] == run and each["ended"]:
                return int(each["stored_steps"])
        return -1

    def rows(self, run: str, first: int) -> float:
        """Reads a page, checks it, and returns the seconds."""
        begin = time.monotonic()
        answer = self._ask("answer", do="rows", run=run, table="steps", first=first, count=_PAGE)
        secs = time.monotonic() - begin
        assert [row[0] for row in answer["answer"]["rows"]] == list(range(first, first + _PAGE))
        return secs


def _until_stored(table: _Table, run: str, rows: int) -> None:
    while (found := table.stored(run)) < 0:
        time.sleep(0.05)
    assert found == rows


def test_pages_of_ten_million_rows(view: View, daemon: Daemon) -> None:
    """The first and any page; a small run beside the large one; the rate of writing while pages are read."""
    table = _Table(view)
    begin = time.monotonic()
    large = table.submit(_ROWS)
    _until_stored(table, large, _ROWS)
    print(f"\n{_ROWS} steps stored in {time.monotonic() - begin:.0f} s")
    small = table.submit(1000)
    _until_stored(table, small, 1000)

    first = table.rows(large, 1)
    numbers = random.Random(0).choices(range(1, _ROWS - _PAGE), k=100)
    pages = [table.rows(large, number) for number in numbers]
    filtered = max(table.rows(small, number) for number in (1, 500, 950))
    print(
        f"first page {first * 1e3:.0f} ms; any page: median {statistics.median(pages) * 1e3:.0f} ms, "
        f"maximum {max(pages) * 1e3:.0f} ms; of the small run {filtered * 1e3:.0f} ms"
    )
    assert max(first, *pages) < _PAGE_SECS
    assert filtered < _FILTER_SECS

    def secs(each: Callable[[], object]) -> float:
        begin = time.monotonic()
        run = table.submit(_ROWS // 10)
        # The page's list is a second old; it would round the time.
        while not next(found for found in client.runs() if found.run_id == run).status.final:
            each()
            time.sleep(0.05)
        secs = time.monotonic() - begin
        _until_stored(table, run, _ROWS // 10)
        return secs

    def read() -> None:
        table.rows(large, random.randrange(1, _ROWS - _PAGE))

    with TrainerClient(daemon.address) as client:
        # One after the other, so that both see the same machine.
        shares = [secs(lambda: None) / secs(read) for _ in range(5)]
    print(f"writing while 20 pages a second are read, of that without: {[round(share, 3) for share in shares]}")
    assert statistics.median(shares) >= _LEAST_SHARE


if __name__ == "__main__":
    pytest_main.run(__file__)
