"""Fifty browsers at once, some of which hang; hostile messages."""

import json
import select
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import DEADLINE_SECS, View, running_view, wait_for
from tests.web.socket_client import SocketClient, cookie_of
from tools.testing import pytest_main

_BROWSERS, _HANGING = 50, 10


class _Run:
    """A run that publishes when the test says so."""

    def __init__(self) -> None:
        self.name = f"browsers-{uuid.uuid4().hex}"
        config = tandem.FastLaneConfig(width=320, height=240, capacity=8, metadata_size=64)
        self._writer = tandem.FastLaneWriter.create(self.name, config)
        self._frame = np.random.default_rng(0).integers(0, 255, (240, 320, 3), np.uint8)
        self.steps = 0

    def publish(self) -> None:
        self.steps += 1
        frame = np.roll(self._frame, self.steps, axis=1)
        self._writer.publish(frame, metadata=json.dumps({"step": self.steps}))

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
def run() -> Iterator[_Run]:
    """A run of 320x240."""
    publishing = _Run()
    yield publishing
    publishing.close()


@pytest.fixture
def view() -> Iterator[View]:
    """A running server."""
    with running_view() as program:
        yield program


def _pss_kib(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return int(rollup.split("\nPss:")[1].split()[0])


def _serve(run: _Run, clients: list[SocketClient], pictures: int) -> None:
    """Publishes 30 frames a second until each client has drawn some more pictures.

    Raises:
      AssertionError: One has not within DEADLINE_SECS.
    """
    wanted = [client.pictures + pictures for client in clients]
    deadline = time.monotonic() + DEADLINE_SECS
    while any(client.pictures < least for client, least in zip(clients, wanted, strict=True)):
        assert time.monotonic() < deadline, [client.pictures for client in clients]
        run.publish()
        ready, _, _ = select.select(clients, [], [], 1 / 30)
        for client in ready:
            assert client.take()


def test_fifty_browsers_see_a_run_and_hanging_ones_cost_nothing(view: View, run: _Run) -> None:
    """All get pictures; the memory does not grow with the time that some do not read."""
    cookie = cookie_of(view.address)
    clients = [SocketClient(view.address, cookie) for _ in range(_BROWSERS)]
    hanging = [SocketClient(view.address, cookie) for _ in range(_HANGING)]
    run.publish()
    for client in clients + hanging:
        client.send(do="pong")
        client.send(do="watch", view=1, run=run.name, width=320)
    _serve(run, clients, 20)
    memory = _pss_kib(view.process.pid)
    _serve(run, clients, 40)
    # The tape grows by ten small pictures a second.
    assert _pss_kib(view.process.pid) - memory < 16 * 1024
    for client in clients + hanging:
        client.close()
    after = SocketClient(view.address, cookie)
    wait_for(lambda: after.take() and "runs" in after.texts, "the list of runs")
    after.close()


@pytest.mark.parametrize(
    "message",
    [
        {"do": "watch", "view": 1, "run": "x"},
        {"do": "act", "id": 1, "what": "pause", "on": "yes"},
        {"do": "seek", "view": "1", "before_ms": 0},
        {"do": "\u202e"},
        {},
    ],
)
def test_ends_a_browser_that_sends_nonsense(view: View, message: dict[str, object]) -> None:
    """Only this connection ends."""
    cookie = cookie_of(view.address)
    client, other = SocketClient(view.address, cookie), SocketClient(view.address, cookie)
    client.send(**message)
    wait_for(lambda: not client.take(), "the end of the connection")
    other.send(do="pong")
    wait_for(lambda: other.take() and "runs" in other.texts, "the list of runs")


def test_a_browser_watches_a_name_that_is_none(view: View) -> None:
    """Names that no run can have are names without frames."""
    client = SocketClient(view.address, cookie_of(view.address))
    for number, name in enumerate(["", "../../etc/passwd", "a" * 4000, "\x00", "%s%n"], 1):
        client.texts.clear()
        client.send(do="watch", view=number, run=name, width=64)
        wait_for(lambda: client.take() and "view" in client.texts, "numbers of the view")
        assert client.texts["view"]["state"] == "fastlane-unavailable"
        client.send(do="unwatch", view=number)


def test_refuses_actions_without_control(view: View) -> None:
    """The answer names the flag."""
    client = SocketClient(view.address, cookie_of(view.address))
    client.send(do="act", id=7, what="pause", target="x", on=True)
    wait_for(lambda: client.take() and "done" in client.texts, "an answer")
    assert client.texts["done"]["id"] == 7
    assert "--control" in client.texts["done"]["error"]


if __name__ == "__main__":
    pytest_main.run(__file__)
