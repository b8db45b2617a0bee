"""Subscriptions by block stream and by single-message stream, with servers that misbehave; and their records."""

import contextlib
import copy
import dataclasses
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

import tandem
from tandem.telemetry import DaemonUnreachable, Episode, Step, Subscription, TrainerClient
from tandem.telemetry.records import fill_message
from tandem.telemetry.wire import load
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

_METHODS = load().methods
_UNWANTED = 2**64 - 1

# Returns the numbers in each message that the server sends after the given number.
_Answer = Callable[[int], Sequence[Sequence[int]]]


class _Server(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Implements GetHealth and some of the streaming methods; after its answer, each stream breaks.

    Attributes:
      asked: The methods called, without GetHealth.
      requests: The requests of the implemented streaming methods.
      greetings: The number of GetHealth calls.
    """

    def __init__(self, methods: Sequence[str], answer: _Answer, last: int, absent: Sequence[int] = ()) -> None:
        """Sets the methods and their answers.

        Args:
          methods: The names of the implemented streaming methods.
          answer: Returns the messages to send.
          last: The last number: a stream that asks for later ones ends with OK.
          absent: The GetHealth calls, counted from 0, that fail with UNAVAILABLE, as on a breaking connection.
        """
        self.asked: list[str] = []
        self.requests: list[Any] = []
        self.greetings = 0
        self._methods, self._answer, self._last, self._absent = methods, answer, last, absent

    def service(self, details: Any) -> Any:
        """Returns the handler of a call; None means UNIMPLEMENTED."""
        name = details.method.rpartition("/")[2]
        method: Any = _METHODS[name]
        assert details.method == method.path
        functions: dict[str, Any] = {"GetHealth": self._health}
        if name != "GetHealth":
            self.asked.append(name)
            functions |= dict.fromkeys(self._methods, lambda request, context: self._stream(name, request, context))
        if name not in functions:
            return None
        return getattr(grpc, f"{method.kind}_rpc_method_handler")(
            functions[name],
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _health(self, request: Any, context: Any) -> Any:
        self.greetings += 1
        if self.greetings - 1 in self._absent:
            context.abort(grpc.StatusCode.UNAVAILABLE, "absent on purpose")
        return _METHODS["GetHealth"].response(healthy=True)

    def _stream(self, name: str, request: Any, context: Any) -> Iterator[Any]:
        self.requests.append(request)
        since = request.since_step if name == "StreamEvents" else request.since_seq
        response = _METHODS[name].response
        for numbers in self._answer(since):
            if name == "StreamEvents":
                yield response(steps=[{"seq_id": number} for number in numbers])
            else:
                yield from (response(seq_id=number) for number in numbers)
        if since < self._last:
            context.abort(grpc.StatusCode.UNAVAILABLE, "broken on purpose")


@contextlib.contextmanager
def _serving(server: _Server) -> Iterator[TrainerClient]:
    running = grpc.server(ThreadPoolExecutor(4), handlers=[server])
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    try:
        with TrainerClient(f"127.0.0.1:{port}") as client:
            yield client
    finally:
        running.stop(None).wait()


_BOTH = ("StreamEvents", "StreamRunSteps")
_WAYS = pytest.mark.parametrize("way", _BOTH)


def test_blocks_are_requested_if_the_server_has_them() -> None:
    """The request excludes the other event streams."""
    server = _Server(_BOTH, lambda since: [range(since + 1, 8), [8, 9]] if since < 9 else [], last=0)
    with _serving(server) as client:
        assert [step.seq_id for step in client.steps("a", since_seq=4)] == [5, 6, 7, 8, 9]
    (request,) = server.requests
    assert server.asked == ["StreamEvents"] and (request.run_id, request.follow) == ("a", True)
    others = (request.since_episode, request.since_lifecycle, request.since_malformed)
    assert (request.since_step, *others) == (4, _UNWANTED, _UNWANTED, _UNWANTED)


@pytest.mark.parametrize(
    ("method", "records"),
    [("StreamRunSteps", TrainerClient.steps), ("StreamRunEpisodes", TrainerClient.episodes)],
)
def test_server_without_blocks_sends_single_messages(
    method: str, records: Callable[[TrainerClient, str], Subscription[Any]]
) -> None:
    """This holds for any server of gymgui.trainer.TrainerService, also after broken connections."""
    server = _Server([method], lambda since: [range(since + 1, min(since + 3, 8))], last=7)
    with _serving(server) as client:
        assert [record.seq_id for record in records(client, "a")] == list(range(1, 8))
    assert server.asked == ["StreamEvents", *[method] * 5]
    assert [(request.run_id, request.since_seq) for request in server.requests] == [("a", n) for n in (0, 2, 4, 6, 7)]


def test_server_without_either_method_is_unsupported() -> None:
    """The error names the method that each server should have."""
    with _serving(_Server([], lambda since: [], last=0)) as client:
        with pytest.raises(tandem.Unsupported, match="StreamRunSteps at "):
            next(client.steps("a"))
        with pytest.raises(tandem.Unsupported, match="WatchRuns at "):
            next(client.watch())


@_WAYS
def test_broken_stream_continues_after_the_last_number(way: str) -> None:
    """Each number arrives once and in order, although the connection breaks after each block or message."""
    server = _Server([way], lambda since: [range(since + 1, min(since + 4, 12))], last=11)
    with _serving(server) as client:
        steps = client.steps("a")
        assert [step.seq_id for step in steps] == list(range(1, 12)) and steps.last_seq == 11
    sinces = [request.since_step if way == "StreamEvents" else request.since_seq for request in server.requests]
    assert sinces == [0, 3, 6, 9, 11]


@_WAYS
@pytest.mark.parametrize("sent", [[[1, 2, 2, 3]], [[1, 2], [2, 3]], [[1, 2], [1]], [[1, 2, 0]]])
def test_repeated_number_raises_broken_peer(way: str, sent: list[list[int]]) -> None:
    """Earlier records are returned; then the error is raised, and the iteration ends."""
    with _serving(_Server([way], lambda since: sent, last=9)) as client:
        steps = client.steps("a")
        assert [next(steps).seq_id, next(steps).seq_id] == [1, 2]
        with pytest.raises(tandem.BrokenPeer, match=f"{way}: expected a number above 2, found [012];"):
            next(steps)
        assert list(steps) == [] and steps.last_seq == 2


@_WAYS
def test_closed_subscription_returns_no_record(way: str) -> None:
    """Also if a block was already received; with a closed client the error is ClientClosed."""
    with _serving(_Server([way], lambda since: [range(since + 1, 100)], last=1000)) as client:
        with client.steps("a") as steps:
            assert next(steps).seq_id == 1
        assert list(steps) == [] and steps.last_seq == 1
        steps = client.steps("a", since_seq=steps.last_seq)
        assert next(steps).seq_id == 2
        client.close()
        with pytest.raises(tandem.ClientClosed):
            next(steps)


@_WAYS
def test_closed_client_is_an_error_after_the_streams_end(way: str) -> None:
    """Without the error, a loop would end normally although received records are missing."""
    with _serving(_Server([way], lambda since: [range(since + 1, 4)], last=0)) as client:
        steps = client.steps("a")
        assert next(steps).seq_id == 1
        assert client.health().healthy  # on the same connection, so the stream's end has arrived
        client.close()
        for _ in range(2):
            with pytest.raises(tandem.ClientClosed):
                next(steps)
        assert steps.last_seq == 1


def test_missing_server_is_reported_after_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes after the records that were received."""
    server = _Server(["StreamEvents"], lambda since: [[1, 2, 3]] if since == 0 else [], last=9)
    # The time to reconnect is over when the third stream breaks.
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 1000 * (len(server.requests) > 2))
    monkeypatch.setattr("tandem.telemetry.subscription.time", clock)
    with _serving(server) as reached, TrainerClient(reached.target, reconnect_secs=60) as client:
        steps = client.steps("a")
        assert [next(steps).seq_id for _ in range(3)] == [1, 2, 3]
        with pytest.raises(DaemonUnreachable, match="StreamEvents at .*broken on purpose"):
            next(steps)


@pytest.mark.parametrize("absent", [[0, 1], [1, 2], [0, 2, 3]], ids=str)
def test_server_that_starts_late_is_found(absent: list[int]) -> None:
    """GetHealth fails a few times, before the first stream and after a broken one; then the server works."""
    server = _Server(["StreamEvents"], lambda since: [range(since + 1, min(since + 3, 4))], last=3, absent=absent)
    with _serving(server) as client:
        assert [step.seq_id for step in client.steps("a")] == [1, 2, 3]
    assert server.greetings == len(absent) + 3 and len(server.requests) == 3


def test_missing_server_is_reported_after_the_timeout() -> None:
    """Holds before the first stream, and after a broken one."""
    server = _Server(["StreamEvents"], lambda since: [[1, 2]], last=9, absent=range(1, 10**6))
    with (
        _serving(server) as reached,
        TrainerClient(reached.target, reconnect_secs=2) as client,
        TrainerClient(reached.target, timeout=1.5) as hurried,
    ):
        steps = client.steps("a")
        assert [next(steps).seq_id, next(steps).seq_id] == [1, 2]
        for never, secs in [(steps, "2"), (hurried.steps("a"), "1.5")]:
            asked_before, began = server.greetings, time.monotonic()
            with pytest.raises(DaemonUnreachable, match=f"expected a daemon at .* within {secs} s, found none"):
                next(never)
            assert server.greetings > asked_before + 1 and time.monotonic() - began >= float(secs)


@pytest.mark.parametrize("closes_client", [False, True])
def test_closing_ends_the_search_for_a_daemon(closes_client: bool) -> None:
    """Another thread closes the subscription or the client long before the time-out."""
    server = _Server([], lambda since: [], last=0, absent=range(10**6))
    with _serving(server) as reached, TrainerClient(reached.target, timeout=1e6) as client:
        steps = client.steps("a")
        ended: list[type[BaseException]] = []

        def read() -> None:
            try:
                next(steps)
            except (StopIteration, tandem.TandemError) as error:
                ended.append(type(error))

        reader = threading.Thread(target=read)
        reader.start()
        while server.greetings < 3 and reader.is_alive():
            time.sleep(0.001)
        (client if closes_client else steps).close()
        reader.join()
        assert ended == [tandem.ClientClosed if closes_client else StopIteration]


_TIMES = [
    datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    None,
]


@pytest.mark.parametrize("time", _TIMES, ids=str)
@pytest.mark.parametrize(("kind", "method"), [(Step, "StreamRunSteps"), (Episode, "StreamRunEpisodes")])
def test_record_of_a_message_equals_a_constructed_one(
    kind: type[Step] | type[Episode], method: str, time: datetime | None
) -> None:
    """Compares all operations of a frozen dataclass."""
    samples = {str: "text", int: 7, float: 0.5, bool: True}
    plain = {
        field.name: samples[type(field.default)] for field in dataclasses.fields(kind) if field.default is not None
    }
    made = kind(**plain, timestamp=time)  # type: ignore[arg-type]
    message = _METHODS[method].response()
    fill_message(message, made)
    record = kind.from_message(type(message).FromString(message.SerializeToString()))
    assert type(record) is kind and record == made and hash(record) == hash(made) and repr(record) == repr(made)
    for same in (pickle.loads(pickle.dumps(record)), copy.copy(record), copy.deepcopy(record)):
        assert type(same) is kind and same == record
    assert dataclasses.replace(record, seq_id=8) == dataclasses.replace(made, seq_id=8) != made
    assert dataclasses.asdict(record) == plain | {"timestamp": time}
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.seq_id = 8  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del record.seq_id
    assert not hasattr(record, "__dict__") and kind.from_message(type(message)()) == kind()


def test_time_is_cut_to_microseconds() -> None:
    """Protobuf's own conversion gives the same time."""
    message = _METHODS["StreamRunSteps"].response(timestamp={"seconds": 5, "nanos": 1_999})
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=5, microseconds=1)
    assert Step.from_message(message).timestamp == expected == message.timestamp.ToDatetime(tzinfo=UTC)
