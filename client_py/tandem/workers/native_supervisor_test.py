"""`NativeSupervisor`: a region with a worker that is another process, and calls after `close`."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import tandem
from tandem._engine import NativeSupervisor
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures


@pytest.fixture
def region() -> Iterator[NativeSupervisor]:
    """Makes a region that has no name yet, and frames."""
    made = NativeSupervisor(
        unique_name(),
        num_envs=2,
        num_workers=1,
        obs_size=3,
        act_size=1,
        task="Test",
        fields=[("reward", "float64", [], "")],
        frame_width=4,
        frame_height=2,
        frame_slots=2,
        metadata_bytes=16,
    )
    with closing(made):
        yield made


_CALLS: dict[str, Callable[[NativeSupervisor], Any]] = {
    "open": lambda region: region.open(),
    "next": lambda region: region.next(0.0, -1),
    "reset_workers": lambda region: region.reset_workers(),
    "message_workers": lambda region: region.message_workers(),
    "stop_workers": lambda region: region.stop_workers(),
    "replace_worker": lambda region: region.replace_worker(0),
    "worker_text": lambda region: region.worker_text(0),
    "end": lambda region: region.end("it ends"),
    "frames_watched": lambda region: region.frames_watched(),
    "publish_frame": lambda region: region.publish_frame(np.zeros((2, 4, 3), np.uint8), 0.0, 0.0, 0.0, "{}"),
    "answer_frame": lambda region: region.answer_frame(),
    "dead_worker": lambda region: region.dead_worker,
    "fd": lambda region: region.fd,
    "answered_at": lambda region: region.answered_at,
    "steps": lambda region: region.steps,
}


def test_the_table_has_all_members() -> None:
    """Without `close`."""
    members = {name for name in vars(NativeSupervisor) if not name.startswith("_")}
    assert members == {*_CALLS, "close"}


@pytest.mark.parametrize("name", _CALLS)
def test_each_call_after_close_is_an_error(region: NativeSupervisor, name: str) -> None:
    """Its text says what to do; `close` may be called again."""
    region.close()
    with pytest.raises(tandem.ClientClosed, match="NativeSupervisor was closed; create another"):
        _CALLS[name](region)
    region.close()


def test_next_returns_while_the_input_is_readable(region: NativeSupervisor) -> None:
    """Several descriptors are one epoll descriptor; a closed end is readable, too."""
    one, others = os.pipe(), os.pipe()
    with select.epoll() as inputs:
        for readable, _ in (one, others):
            inputs.register(readable, select.EPOLLIN)
        assert region.next(0.0, inputs.fileno()) == "timed out"
        os.write(others[1], b"x")
        assert region.next(100.0, inputs.fileno()) == "input"
        assert region.next(100.0, inputs.fileno()) == "input"
        assert region.next(0.0, -1) == "timed out"
        os.read(others[0], 1)
        assert region.next(0.0, inputs.fileno()) == "timed out"
        os.close(one[1])
        assert region.next(100.0, inputs.fileno()) == "input"
    for fd in (one[0], *others):
        os.close(fd)


def test_an_input_ends_a_wait_that_has_begun(region: NativeSupervisor) -> None:
    """Written by a signal handler, which runs while the call waits."""
    readable, writable = os.pipe()
    before = signal.signal(signal.SIGALRM, lambda *_: os.write(writable, b"x"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert region.next(100.0, readable) == "input"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    os.close(readable)
    os.close(writable)


def test_next_raises_what_a_signal_handler_raises(region: NativeSupervisor) -> None:
    """Also if the signal came before the wait."""

    def interrupt(*_: Any) -> None:
        raise InterruptedError("the handler ran")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(InterruptedError, match="the handler ran"):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            region.next(100.0, -1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_next_returns_at_its_deadline(region: NativeSupervisor) -> None:
    """Not before."""
    begin = time.monotonic()
    assert region.next(0.15, -1) == "timed out"
    assert time.monotonic() - begin >= 0.15
