"""A model of one slot for requested images, with all interleavings: a held image stays, and a late read is detected.

    step here                                 transport/frames/image_slot.cc
    marks, writes, ends, sends                ImageSlotWriter::Write, RpcConnection::Send
    admits                                    ImageSlotWriter::Begin
    takes, reads, tests, releases             ImageLease

Up to three callers come one after the other. A caller may end its session, or die, at any step; then its last lease may
still read and release, later than the next caller's steps. An image has two parts, so that a read can see two images.
The properties:

- A lease of the current session reads one image, the one of its notice.
- A lease of an ended session that reads anything else finds that the image is not intact.
- From every state, without further deaths, each lease ends; the engine can write again.

Not modelled: the RPC ring that carries the notice, the second slot, which shares no word with the first, and the order
of memory operations (image_slot_test runs both ends under ThreadSanitizer).
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explorer import Result, Step, explore
from tests.model.model_tests import model_tests

CALLERS = 3
IMAGES = 3  # the greatest number that the engine writes

# Mutation -> what the side then does.
MUTATIONS = {
    "engine: writes into a held slot": "it does not read released",
    "engine: writes before it marks the slot": "the odd seq comes after the first part",
    "engine: counts the images of each caller": "the next caller's first image has the number of this one's",
    "engine: keeps the last caller's hold": "Begin does not forget the held image",
    "caller: releases before its last read": "the engine writes meanwhile",
    "caller: an old lease lowers released": "the store is not limited to greater numbers",
    "caller: tests before its last read": "the engine writes meanwhile",
}


class Lease(NamedTuple):
    """One lease: its step, the number of its notice, and the parts that it has read."""

    at: str = "none"
    seq: int = 0
    first: int = 0
    second: int = 0
    current: bool = True  # whether its session still runs
    intact: bool = True


class State(NamedTuple):
    """The slot, and both sides."""

    caller: int = 0
    seq: int = 0
    released: int = 0
    first: int = 0  # the two parts of the image, by the number of the image
    second: int = 0
    engine: str = "idle"
    images: int = 0
    held: int = 0
    notice: int = 0  # in the caller's ring
    lease: Lease = Lease()
    old: Lease = Lease()  # of the session before
    problem: str = ""


def _engine_steps(s: State, mutation: str) -> Iterator[Step[State]]:
    number = s.images
    late_mark = mutation == "engine: writes before it marks the slot"
    if s.engine == "idle" and s.caller < CALLERS and s.images < IMAGES and s.notice == 0:
        if s.held == 0 or s.held == s.released or mutation == "engine: writes into a held slot":
            begun = s._replace(images=number + 1, engine="first")
            yield "engine marks", begun if late_mark else begun._replace(seq=2 * number + 3)
    elif s.engine == "first":
        yield "engine writes", s._replace(first=number, engine="marks late" if late_mark else "second")
    elif s.engine == "marks late":
        yield "engine marks", s._replace(seq=2 * number + 1, engine="second")
    elif s.engine == "second":
        yield "engine writes", s._replace(second=number, engine="ends")
    elif s.engine == "ends":
        whole = 2 * number + 2
        yield "engine ends and sends", s._replace(seq=whole, held=whole, notice=whole, engine="idle")


def _lease_steps(s: State, name: str, lease: Lease, mutation: str) -> Iterator[Step[State]]:
    def becomes(after: Lease, **others: int | str) -> State:
        return s._replace(**{name: after}, **others)  # type: ignore[arg-type]

    if lease.at == "taken":
        yield f"{name} reads", becomes(lease._replace(at="half", first=s.first))
        if mutation == "caller: releases before its last read":
            yield f"{name} releases", becomes(lease._replace(at="reads late"), released=lease.seq)
        if mutation == "caller: tests before its last read":
            yield f"{name} tests", becomes(lease._replace(at="read on", intact=s.seq == lease.seq, first=s.first))
    elif lease.at == "reads late":
        yield f"{name} reads", becomes(lease._replace(at="late", first=s.first))
    elif lease.at == "late":
        yield f"{name} reads", _judged(becomes(Lease()), lease._replace(second=s.second))
    elif lease.at == "half":
        yield f"{name} reads", becomes(lease._replace(at="read", second=s.second))
    elif lease.at == "read on":
        yield f"{name} reads", becomes(lease._replace(at="tested", second=s.second))
    elif lease.at == "read":
        yield f"{name} tests", becomes(lease._replace(at="tested", intact=s.seq == lease.seq))
    elif lease.at == "tested":
        lowers = mutation == "caller: an old lease lowers released"
        released = lease.seq if lowers else max(s.released, lease.seq)
        yield f"{name} releases", _judged(becomes(Lease(), released=released), lease)


def _judged(after: State, lease: Lease) -> State:
    image = (lease.seq - 2) // 2
    right = lease.first == lease.second == image
    if lease.current and not (right and lease.intact):
        return after._replace(problem="a lease of the current session has lost its image")
    if lease.intact and not right:
        return after._replace(problem="a late read of another image is not detected")
    return after


def _caller_steps(s: State, mutation: str) -> Iterator[Step[State]]:
    if s.lease.at == "none" and s.notice:
        yield "caller takes", s._replace(notice=0, lease=Lease("taken", s.notice))
    if s.engine == "idle" and s.old.at == "none" and s.caller < CALLERS:
        held = s.held if mutation == "engine: keeps the last caller's hold" else 0
        counts_anew = mutation == "engine: counts the images of each caller"
        yield (
            "the session ends, the engine admits the next caller",
            s._replace(
                caller=s.caller + 1,
                notice=0,
                released=0,
                held=held,
                images=0 if counts_anew else s.images,
                lease=Lease(),
                old=s.lease._replace(current=False),
            ),
        )
    if s.old.at != "none":
        yield "the last caller's process dies", s._replace(old=Lease())


def run(mutation: str = "") -> Result[State]:
    """Explores the slot.

    Args:
      mutation: One of MUTATIONS; empty: the protocol.

    Returns:
      The exploration's result.
    """

    def steps(s: State) -> Iterator[Step[State]]:
        yield from _engine_steps(s, mutation)
        yield from _lease_steps(s, "lease", s.lease, mutation)
        yield from _lease_steps(s, "old", s.old, mutation)
        yield from _caller_steps(s, mutation)

    def at_rest(s: State) -> bool:
        nothing_held = s.lease.at == "none" and s.old.at == "none" and not s.notice
        return s.engine == "idle" and nothing_held and (s.held in (0, s.released) or s.caller == CALLERS)

    def is_failure(label: str) -> bool:
        return label.endswith((" dies", "next caller"))

    return explore(State(), steps, lambda s: s.problem, at_rest, is_failure)


test_the_protocol_holds, test_each_mutation_breaks_the_protocol = model_tests(run, MUTATIONS)
