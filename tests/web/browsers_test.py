"""Fifty browsers at once, some of which hang; hostile messages."""

import contextlib
import json
import select
import struct
import time
import uuid
from collections.abc import Iterator

import numpy as np
import pytest

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import DEADLINE_SECS, View, pss_kib, running_view, wait_for
from tests.web.socket_client import SocketClient, cookie_of

_BROWSERS, _HANGING = 50, 10


class _Run:
    """A run that publishes when the test says so."""

    def __init__(self) -> None:
        self.name = f"browsers-{uuid.uuid4().hex}"
        config = tandem.fastlane.FastLaneConfig(width=320, height=240, capacity=8, metadata_size=64)
        self._writer = tandem.fastlane.FastLaneWriter.create(self.name, config)
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
    memory = pss_kib(view.process.pid)
    _serve(run, clients, 40)
    # The tape grows by ten small pictures a second.
    assert pss_kib(view.process.pid) - memory < 16 * 1024
    for client in clients + hanging:
        client.close()
    after = SocketClient(view.address, cookie)
    wait_for(lambda: after.take() and "runs" in after.texts, "the list of runs")
    after.close()


def _frame(first: int, payload: bytes = b"", *, size: int | None = None, masked: bool = True) -> bytes:
    """Returns a WebSocket frame with a mask of zeros; `first` is its first byte, `size` the announced size."""
    size = len(payload) if size is None else size
    mask = 0x80 if masked else 0
    if size < 126:
        head = struct.pack(">BB", first, mask | size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", first, mask | 126, size)
    else:
        head = struct.pack(">BBQ", first, mask | 127, size)
    return head + (bytes(4) if masked else b"") + payload


@pytest.mark.parametrize(
    "data",
    [
        _frame(0x83, b"{}"),  # a reserved opcode
        _frame(0x8B, b""),  # a reserved opcode of control frames
        _frame(0xC1, b"{}"),  # a reserved bit: no extension was agreed upon
        _frame(0x81, b'{"do": "pong"}', masked=False),
        _frame(0x80, b"{}"),  # a continuation of nothing
        _frame(0x01, b'{"do"') + _frame(0x81, b': "pong"}'),  # a message inside a message
        _frame(0x09, b"x"),  # a ping in parts
        _frame(0x89, b"x" * 126),  # a ping that is too long
        _frame(0x88, b"x"),  # half of a reason
        _frame(0x88, b"\x03\xe8\xff\xfe"),  # a reason that is no UTF-8
        _frame(0x81, b'{"do": "\xff\xfe"}'),  # no UTF-8
        _frame(0x82, b'{"do": "pong"}'),  # no text
        _frame(0x81, b"x" * 1000, size=1 << 63),
        _frame(0x81, b"x" * 1000, size=(1 << 63) - 1),
        _frame(0x81, b'{"do": "act", "text": "' + b"x" * (400 << 10) + b'"}'),
        _frame(0x81, b"[" * (200 << 10)),
        _frame(0x81, b'{"a":' * (50 << 10)),
        _frame(0x81, b'{"do": "drawn", "view": 99999999999999999999999, "sent": 1}'),
        _frame(0x81, b'{"do": "watch", "view": 1, "run": "\\ud800", "width": 64}'),
    ],
    ids=lambda data: data[:12].hex(),
)
def test_ends_a_browser_that_sends_no_message(view: View, data: bytes) -> None:
    """Frames that break the protocol, are too large or are no JSON end their connection, and nothing else."""
    cookie = cookie_of(view.address)
    client, other = SocketClient(view.address, cookie), SocketClient(view.address, cookie)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.send_bytes(data)
    wait_for(lambda: not client.take(), "the end of the connection")
    other.send(do="pong")
    wait_for(lambda: other.take() and "runs" in other.texts, "the list of runs")


def test_takes_a_message_in_parts(view: View) -> None:
    """Fragments and a ping between them are of the protocol."""
    client = SocketClient(view.address, cookie_of(view.address))
    message = b'{"do": "watch", "view": 3, "run": "none", "width": 64}'
    client.send_bytes(_frame(0x01, message[:9]) + _frame(0x00, b"") + _frame(0x89, b"x") + _frame(0x80, message[9:]))
    wait_for(lambda: client.take() and client.texts.get("view", {}).get("view") == 3, "numbers of the view")


def test_logs_an_action_on_one_line() -> None:
    """Texts of a browser and of a daemon have line feeds and escapes: they are printed as text."""
    with running_view("--control", "--nodaemon", "--daemon_target=127.0.0.1:1") as view:
        client = SocketClient(view.address, cookie_of(view.address))
        hostile = "x\n2026-01-01 00:00:00 cancel y: done\x1b[2J\u202e"
        client.send(do="act", id=1, what="cancel", target=hostile)
        wait_for(lambda: client.take() and "done" in client.texts, "an answer")
        (line,) = view.end().splitlines()
        assert "cancel x\\x0a2026" in line and "\\x1b[2J" in line
