"""Helpers for the field table's client: refusals, watches, streams on threads, a ControlStream."""

import queue
import threading
from collections.abc import Iterable
from typing import Any

import grpc
import tests.interop.trainer_table_pb2 as table


class Refused:
    """Checks that a call is refused with a status code and with given parts of its text."""

    def __init__(self, code: Any, *facts: str) -> None:
        """Sets the expected code and the expected parts of the text."""
        self._code, self._facts = code, facts

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        """Checks the raised error."""
        assert isinstance(error, grpc.RpcError), f"expected {self._code}, found {error!r}"
        assert error.code() is self._code, error.details()
        for fact in self._facts:
            assert fact in error.details()
        return True


def until(trainer: Any, run_id: str, *statuses: int) -> list[Any]:
    """Watches a run until it has one of the given states, and returns its changes."""
    seen = []
    call = trainer.WatchRuns(table.Watch())
    for record in call:
        if record.run_id == run_id:
            seen.append(record)
            if record.status in statuses:
                call.cancel()
                return seen
    raise AssertionError("WatchRuns ended")


class Reader:
    """Collects a stream's messages on its own thread."""

    def __init__(self, call: Iterable[Any]) -> None:
        """Starts the thread."""
        self.seen: list[Any] = []
        self._grown = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._read, args=(call,), daemon=True)
        self._thread.start()

    def _read(self, call: Iterable[Any]) -> None:
        try:
            for message in call:
                with self._grown:
                    self.seen.append(message)
                    self._grown.notify_all()
        except grpc.RpcError:
            pass  # cancelled at the test's end
        with self._grown:
            self._ended = True
            self._grown.notify_all()

    def wait_for(self, count: int) -> list[Any]:
        """Waits until the given number of messages has come."""
        with self._grown:
            self._grown.wait_for(lambda: len(self.seen) >= count or self._ended)
            assert len(self.seen) >= count
            return list(self.seen)

    def wait_for_end(self) -> list[Any]:
        """Waits until the stream has ended."""
        with self._grown:
            self._grown.wait_for(lambda: self._ended)
            return list(self.seen)


class Controls:
    """An open ControlStream of one run."""

    def __init__(self, trainer: Any, run_id: str, **options: Any) -> None:
        """Opens the stream."""
        self._sent: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._run_id = run_id
        self.call = trainer.ControlStream(iter(self._sent.get, None), **options)

    def send(self, **event: Any) -> None:
        """Sends an event."""
        self._sent.put(table.ControlEvent(run_id=self._run_id, **event))

    def receive(self) -> tuple[str, bool]:
        """Waits for an event, and returns its kind and value."""
        event = next(self.call)
        assert event.run_id == self._run_id
        kind = event.WhichOneof("event")
        return kind, getattr(event, kind)

    def close(self) -> None:
        """Ends the stream."""
        self._sent.put(None)
