"""Small models of the protocols for weak_memory.py: each operation with a label stands for that of the code.

model        threads                                                         not in it
ring         a writer, which attaches twice; a reader; two places            skips, the doorbell
frames       a writer of three frames in two slots, a reader; as under       the header, lengths
             ThreadSanitizer, RacyCopy copies relaxed words
misaligned   the same; the slot's seq may tear, so that the head decides
metrics      the same; a frame's metrics are its own, or newer
own run      a client that writes its statistics twice, a reader             the engine, which clears them
exchange     a client, an engine; two exchanges                              the attach, texts
doorbell     one exchange; both sides sleep                                  slices of sleeps
stop         a thread that stops an engine, which sleeps
workers      a client, two workers; two exchanges                            doorbells, failures
take over    a client, a worker, a supervisor; two exchanges                 the worker's death
attendants   an engine, two attendants, one after the other                  the lock, which orders these; doorbells

A load with `until` is a wait that spins. Its misses are not steps: they would only add to the thread's view.
"""

from collections.abc import Generator
from typing import Any

from tests.model.weak_memory import Model, Op, Program, Thread, add, fence, load, read, rmw, store, write

Part = Generator[Op, Any, Any]  # of a thread: returns a value
SLOTS = 2  # of a ring, and of a frame ring


def _ring_open(ring: str) -> Part:
    """RingSide::Open: returns both positions."""
    freed = yield load(f"{ring}.read_pos", "ring.free", "RingSide::Open")
    written = yield load(f"{ring}.write_pos", "ring.commit", "RingSide::Open")
    return freed, written


def _ring_write(ring: str, at: int, freed: int, message: int) -> Part:
    """RingWriter::Write: returns what is known of read_pos."""
    if at - freed == SLOTS:
        has_room = (at - SLOTS).__lt__
        freed = yield load(f"{ring}.read_pos", "ring.free", "RingWriter::RefreshReadPos", until=has_room)
    yield store(f"{ring}.length{at % SLOTS}", message)
    yield write(f"{ring}.bytes{at % SLOTS}", message)
    yield store(f"{ring}.write_pos", at + 1, "ring.commit", "RingWriter::TryWrite")
    return freed


def _ring_read(ring: str, at: int, written: int, expected: int) -> Part:
    """RingReader::Read: returns what is known of write_pos."""
    if at == written:
        written = yield load(f"{ring}.write_pos", "ring.commit", "RingReader::RefreshWritePos", until=at.__lt__)
    length = yield load(f"{ring}.length{at % SLOTS}")
    message = yield read(f"{ring}.bytes{at % SLOTS}")
    assert (length, message) == (expected, expected), f"message {message} of length {length} instead of {expected}"
    yield store(f"{ring}.read_pos", at + 1, "ring.free", "RingReader::Free")
    return written


def _ring_writer() -> Thread:
    freed, at = yield from _ring_open("ring")
    for message in (1, 2, 3):
        freed = yield from _ring_write("ring", at, freed, message)
        at += 1
        if message == 2:
            freed, at = yield from _ring_open("ring")
    return None


def _ring_reader() -> Thread:
    at, written = yield from _ring_open("ring")
    for message in (1, 2, 3):
        written = yield from _ring_read("ring", at, written, message)
        at += 1
    return None


def _frame_writer() -> Thread:
    for number in (1, 2, 3):
        slot = number % SLOTS
        yield store(f"seq{slot}", 2 * number - 1)
        yield fence("flan.overwrite", "FrameWriter::Begin")
        yield store(f"first{slot}", number)
        yield store(f"last{slot}", number)
        yield fence("flan.seq", "FrameWriter::End")
        yield store(f"seq{slot}", 2 * number)
        yield store("metrics", number)
        yield store("head", number, "flan.commit", "FrameWriter::End")
    return None


def _frame_reader(aligned: bool, metrics: bool) -> Thread:
    number = yield load("head", "flan.commit", "FrameReader::Read")
    slot = number % SLOTS
    if number == 0 or (aligned and (yield load(f"seq{slot}")) != 2 * number):
        return None
    yield fence("flan.seq", "FrameReader::CopyOut")
    first = yield load(f"first{slot}")
    last = yield load(f"last{slot}")
    yield fence("flan.overwrite", "FrameReader::CopyOut")
    if aligned:
        whole = (yield load(f"seq{slot}")) == 2 * number
    else:
        whole = number <= (yield load("head")) <= number + SLOTS - 2  # HeadProves
    assert not whole or (first, last) == (number, number), f"frame {number} is {first}, {last}"
    if metrics and whole:
        assert (yield load("metrics")) >= number, "the metrics are older than their frame"
    return None


def _own_run_writer() -> Thread:
    for number in (1, 2):
        yield store("own_seq", 2 * number - 1)
        yield fence("own.overwrite", "StoreOwnRun")
        yield store("first", number)
        yield store("last", number)
        yield store("own_seq", 2 * number, "own.commit", "StoreOwnRun")
    return None


def _own_run_reader() -> Thread:
    seq = yield load("own_seq", "own.commit", "LoadOwnRun")
    if seq % 2 != 0:
        return None
    first = yield load("first")
    last = yield load("last")
    yield fence("own.overwrite", "LoadOwnRun")
    if (yield load("own_seq")) == seq:
        assert (first, last) == (seq // 2, seq // 2), f"the statistics of {seq} are {first}, {last}"
    return None


def _sleep_until(word: str, wanted: int, label: str, function: str, bell: str, then: Program | None) -> Thread:
    """Waiter::Until, asleep on a doorbell, or spinning without one; continues with `then`."""
    if not bell:
        yield load(word, label, function, until=wanted)
        return then
    seen = yield load(f"{bell}.bell")
    yield add(f"{bell}.sleepers", 1)
    yield fence("doorbell.dekker", "Doorbell::SleepUnless")
    found = yield load(word, label, function)
    if found != wanted:
        yield Op("sleep", f"{bell}.bell", seen)
    yield add(f"{bell}.sleepers", -1)
    return then if found == wanted else (_sleep_until, word, wanted, label, function, bell, then)


def _notify_all(bell: str) -> Part:
    yield fence("doorbell.dekker", "Doorbell::NotifyAll")
    yield add(f"{bell}.bell", 1)
    yield Op("wake", f"{bell}.bell")


def _notify(bell: str) -> Part:
    if bell:
        yield fence("doorbell.dekker", "Doorbell::AnyWaiting")
        if (yield load(f"{bell}.sleepers")) > 0:
            yield from _notify_all(bell)


def _stops() -> Thread:
    yield add("asked", 1)
    yield from _notify_all("engine")
    return None


def _sends(number: int, exchanges: int, sleeps: bool, rows: tuple[str, ...]) -> Thread:
    yield write("actions", number)
    yield store("kind", number)
    yield store("action_seq", number, "lockstep.action", "ClientCore::Post")
    yield from _notify("engine" if sleeps else "")
    then = (_receives, number, exchanges, sleeps, rows)
    bell = "client" if sleeps else ""
    return _sleep_until, "frame_seq", number, "lockstep.frame", "ClientCore::HasResults", bell, then


def _receives(number: int, exchanges: int, sleeps: bool, rows: tuple[str, ...]) -> Thread:
    for array in ("status", *rows):
        assert (yield read(array)) == number, f"{array} is of another exchange"
    return (_sends, number + 1, exchanges, sleeps, rows) if number < exchanges else None


def _engine(number: int, exchanges: int, sleeps: bool) -> Program:
    then = (_serves, number, exchanges, sleeps)
    bell = "engine" if sleeps else ""
    return _sleep_until, "action_seq", number, "lockstep.action", "EngineSide::HasExchange", bell, then


def _serves(number: int, exchanges: int, sleeps: bool) -> Thread:
    yield from _step("row0", number)
    yield from _complete(number, "EngineSide::Complete")
    yield from _notify("client" if sleeps else "")
    return _engine(number + 1, exchanges, sleeps) if number < exchanges else None


def _step(row: str, number: int) -> Part:
    assert (yield load("kind")) == number, "the kind is of another exchange"
    assert (yield read("actions")) == number, "the actions are of another exchange"
    yield write(row, number)


def _complete(number: int, function: str) -> Part:
    yield write("status", number)  # a second publisher would race with its reader
    yield store("kind", 0)
    yield store("frame_seq", number, "lockstep.frame", function)


def _worker(index: int, workers: int, number: int = 1) -> Thread:
    yield load("action_seq", "lockstep.action", "WorkerSide::Core::HasExchange", until=number)
    yield from _step(f"row{index}", number)
    yield store(f"done{index}", number, "workers.done", "WorkerSide::Core::FinishExchange")
    yield fence("workers.finish", "WorkerSide::Core::FinishExchange")
    if (yield from _all_done(number, workers)):
        yield from _publishes(number, lambda publisher: publisher != number)  # Win, without its load
    return (_worker, index, workers, 2) if number == 1 else None


def _all_done(number: int, workers: int) -> Part:
    for worker in range(workers):
        if (yield load(f"done{worker}", "workers.done workers.finish", "WorkerElection::AllDone")) != number:
            return False
    return True


def _publishes(number: int, may_win: Any) -> Part:
    def win(publisher: int) -> int | None:
        return number if may_win(publisher) else None

    if may_win((yield rmw("publisher", win, "workers.publisher", "WorkerElection::WinFrom"))):
        yield from _complete(number, "WorkerElection::Publish")


def _takes_over(workers: int) -> Thread:
    found = yield load("publisher", "workers.publisher", "EngineWorkers::TakeOver")
    number = (yield load("frame_seq", "lockstep.frame", "EngineWorkers::TakeOver")) + 1
    if (yield from _all_done(number, workers)) and found != number:
        yield from _publishes(number, found.__eq__)
    return None


_ANNOUNCES = ("attendant_bell", 1, "attendant.bell", "AttendantSide::AnnounceRpcs")


def _attends(number: int) -> Thread:
    """An attendant, whose request is an odd number; then the next one."""
    yield store("label", number)
    yield store("request", number, "attendant.hello", "AttendantSide::Request")
    yield add(*_ANNOUNCES)
    yield load("ack", "attendant.welcome", "AttendantSide::Request", until=number)
    at, written = yield from _ring_open("answers")
    freed, end = yield from _ring_open("calls")
    yield from _ring_write("calls", end, freed, number)
    yield add(*_ANNOUNCES)
    yield from _ring_read("answers", at, written, number)
    yield store("request", number + 1, "attendant.hello", "AttendantSide::Close")
    yield add(*_ANNOUNCES)
    return (_attends, number + 2) if number == 1 else None


def _polls(bell: int, known: int, called: bool) -> Thread:
    """A round of the engine, which waits for the bell; `known` is the request that it has handled last."""
    bell = yield load("attendant_bell", "attendant.bell", "OwnerSide::PollAttendants", until=bell.__ne__)
    request = yield load("request", "attendant.hello", "OwnerSide::PollAttendant")
    if request not in (known, 2, 4):
        assert (yield load("label")) == request, "the label is that of another attendant"
        for ring in ("answers", "calls"):
            yield store(f"{ring}.read_pos", 0, "ring.free", "ResetRing")
            yield store(f"{ring}.write_pos", 0, "ring.commit", "ResetRing")
        yield store("ack", request, "attendant.welcome", "OwnerSide::WelcomeAttendant")
        called = False
    if request in (1, 3) and not called:
        called = (yield load("calls.write_pos", "ring.commit", "RingReader::RefreshWritePos")) == 1
        if called:
            yield from _ring_read("calls", 0, 1, request)
            yield from _ring_write("answers", 0, 0, request)
    return (_polls, bell, request, called) if request != 4 else None


def _zeros(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, 0)


def _rings(*rings: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns words and data of rings."""
    words = [f"{ring}.{word}" for ring in rings for word in ("write_pos", "read_pos", "length0", "length1")]
    return _zeros(*words), _zeros(*(f"{ring}.bytes{slot}" for ring in rings for slot in range(SLOTS)))


def _frames(aligned: bool, metrics: bool) -> Model:
    words = _zeros("head", "metrics", *(f"{name}{slot}" for name in ("seq", "first", "last") for slot in range(SLOTS)))
    return Model({"writer": (_frame_writer,), "reader": (_frame_reader, aligned, metrics)}, words)


def _exchange(exchanges: int, sleeps: bool) -> Model:
    bells = [f"{side}.{word}" for side in ("engine", "client") if sleeps for word in ("bell", "sleepers")]
    threads = {"client": (_sends, 1, exchanges, sleeps, ("row0",)), "engine": _engine(1, exchanges, sleeps)}
    return Model(threads, _zeros("action_seq", "frame_seq", "kind", *bells), _zeros("actions", "status", "row0"))


def _workers(workers: int, **others: Program) -> Model:
    indices = range(workers)
    rows = tuple(f"row{index}" for index in indices)
    threads = {f"worker {index}": (_worker, index, workers) for index in indices}
    return Model(
        {"client": (_sends, 1, 2, False, rows), **threads, **others},
        _zeros("action_seq", "frame_seq", "kind", "publisher", *(f"done{index}" for index in indices)),
        _zeros("actions", "status", *rows),
    )


MODELS = {
    "ring": Model({"writer": (_ring_writer,), "reader": (_ring_reader,)}, *_rings("ring")),
    "frames": _frames(aligned=True, metrics=False),
    "misaligned": _frames(aligned=False, metrics=False),
    "metrics": _frames(aligned=True, metrics=True),
    "own run": Model({"client": (_own_run_writer,), "reader": (_own_run_reader,)}, _zeros("own_seq", "first", "last")),
    "exchange": _exchange(2, sleeps=False),
    "doorbell": _exchange(1, sleeps=True),
    "stop": Model(
        {"stopper": (_stops,), "engine": (_sleep_until, "asked", 1, "", "", "engine", None)},
        _zeros("asked", "engine.bell", "engine.sleepers"),
    ),
    "workers": _workers(2),
    "take over": _workers(1, supervisor=(_takes_over, 1)),
    "attendants": Model(
        {"attendants": (_attends, 1), "engine": (_polls, 0, 0, False)},
        _zeros("label", "request", "ack", "attendant_bell") | _rings("answers", "calls")[0],
        _rings("answers", "calls")[1],
    ),
}
# With more states, for the orders in the code alone.
LARGER = {"take over of two": _workers(2, supervisor=(_takes_over, 2))}
