"""A model of one attendant slot, with all interleavings: rings belong to one attendant at a time, and each rule counts.

    step here                                  transport/session
    takes, reads ack, chooses, requests        AttendantSide::TakeSlot, Request
    is welcomed, calls, is answered            AttendantSide::Request, RpcClient
    gives up, leaves, unlocks                  AttendantSide::Close
    looks, empties, welcomes, sees a free lock EngineAttendants::Poll, Reset, Welcome, CheckLocks
    answers                                    RpcConnection::Poll

Up to three attendants come one after the other. Each may die at any step, or give up before the engine's answer. The
properties:

- An attendant reads only answers to its own call, and the engine empties no ring of a welcomed attendant.
- The engine answers no call of an attendant after the next one was welcomed.
- From every state, without further deaths, each wait ends, and the engine knows that an attendant has left or died.

Not modelled: the bytes of the rings and their doorbells (see doorbell_model_test.py); the engine's death, which ends
every wait by its lock; several slots, which share only the bell.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explorer import Result, Step, explore
from tests.model.model_tests import model_tests

ATTENDANTS = 3

# Mutation -> what the side then does.
MUTATIONS = {
    "attendant: takes an old number": "the next number is the first one again",
    "attendant: uses the rings before the answer": "it does not wait for ack",
    "attendant: leaves with the number 0": "the next attendant may take the number of the one that left",
    "attendant: unlocks before it leaves": "the next one may take the slot before request says that it is free",
    "attendant: does not ring": "the engine sleeps",
    "engine: answers before it empties the rings": "ack comes first",
    "engine: does not look at the lock": "a dead attendant stays",
    "engine: keeps the calls of the last attendant": "the rings are not emptied",
}


class Attendant(NamedTuple):
    """One attendant."""

    at: str = "comes"
    number: int = 0


class State(NamedTuple):
    """The slot, its rings, and both sides."""

    who: int = 0  # the attendant that holds the lock, or comes next
    locked: bool = False
    request: int = 0
    ack: int = 0
    bell: bool = False
    to_engine: tuple[int, ...] = ()  # calls, by their caller
    to_attendant: tuple[int, ...] = ()  # answers, by the caller of the call
    attendant: Attendant = Attendant()
    leaver: bool = False  # the attendant before has unlocked, and has not stored its last request yet
    engine: str = "idle"
    known: int = 0
    present: bool = False
    problem: str = ""


_USES = ("welcomed", "waits for its answer")


def _is_present(request: int, mutation: str) -> bool:
    return request != 0 if mutation == "attendant: leaves with the number 0" else request % 2 == 1


def _next_number(s: State, mutation: str) -> int:
    if mutation == "attendant: takes an old number":
        return 1
    if mutation == "attendant: leaves with the number 0":
        number = s.request + 1
        return number + 1 if number == s.attendant.number else number  # its `number` holds the ack that it has read
    return s.request + 1 + s.request % 2


def _attendant_steps(s: State, mutation: str) -> Iterator[Step[State]]:
    me = s.attendant
    rings = mutation != "attendant: does not ring"
    if me.at == "comes" and not s.locked:
        yield "attendant takes the slot", s._replace(locked=True, attendant=Attendant("locked"))
    elif me.at == "locked":
        yield "attendant reads ack", s._replace(attendant=Attendant("chooses", s.ack))
    elif me.at == "chooses":
        yield "attendant chooses", s._replace(attendant=Attendant("requests", _next_number(s, mutation)))
    elif me.at == "requests":
        then = "welcomed" if mutation == "attendant: uses the rings before the answer" else "asks"
        asked = me._replace(at=then)
        yield "attendant requests", s._replace(request=me.number, bell=s.bell or rings, attendant=asked)
    elif me.at == "asks":
        if s.ack == me.number:
            yield "attendant is welcomed", s._replace(attendant=me._replace(at="welcomed"))
        yield "attendant gives up", s._replace(attendant=me._replace(at="leaves"))
    elif me.at == "welcomed":
        called = me._replace(at="waits for its answer")
        yield "attendant calls", s._replace(to_engine=(*s.to_engine, s.who), bell=s.bell or rings, attendant=called)
    elif me.at == "waits for its answer" and s.to_attendant:
        answer, *others = s.to_attendant
        problem = "" if answer == s.who else "an attendant reads the answer to another's call"
        yield (
            "attendant is answered",
            s._replace(to_attendant=tuple(others), attendant=me._replace(at="leaves"), problem=problem),
        )
    elif me.at == "leaves":
        if mutation == "attendant: unlocks before it leaves":
            yield "attendant unlocks", _next_attendant(s)._replace(leaver=True)
        else:
            left = 0 if mutation == "attendant: leaves with the number 0" else me.number + 1
            yield "attendant leaves", s._replace(request=left, bell=True, attendant=me._replace(at="unlocks"))
    elif me.at == "unlocks":
        yield "attendant unlocks", _next_attendant(s)
    if s.leaver:
        yield "the last attendant leaves", s._replace(request=s.request + 1, bell=True, leaver=False)
    if s.locked:
        yield "attendant dies", _next_attendant(s)


def _next_attendant(s: State) -> State:
    return s._replace(locked=False, who=s.who + 1, attendant=Attendant())


def _engine_steps(s: State, mutation: str) -> Iterator[Step[State]]:
    if s.engine == "idle" and s.bell:
        looked = s._replace(bell=False)
        if s.request != s.known:
            arrived = _is_present(s.request, mutation)
            looked = looked._replace(known=s.request, present=False, engine="arrived" if arrived else "idle")
        yield "engine looks", looked
    elif s.engine == "arrived":
        if mutation == "engine: answers before it empties the rings":
            yield "engine welcomes", s._replace(ack=s.known, present=True, engine="empties late")
        else:
            yield "engine empties the rings", _emptied(s, mutation)._replace(engine="welcomes")
    elif s.engine == "empties late":
        yield "engine empties the rings", _emptied(s, mutation)._replace(engine="idle")
    elif s.engine == "welcomes":
        yield "engine welcomes", s._replace(ack=s.known, present=True, engine="idle")
    if s.engine == "idle" and s.present and not s.locked and mutation != "engine: does not look at the lock":
        yield "engine sees a free lock", s._replace(present=False)
    if s.engine == "idle" and s.present and s.to_engine:
        caller, *others = s.to_engine
        late = caller != s.who and s.attendant.at in _USES
        yield (
            "engine answers",
            s._replace(
                to_engine=tuple(others),
                to_attendant=(*s.to_attendant, caller),
                problem="a call is answered after the next attendant was welcomed" if late else "",
            ),
        )


def _emptied(s: State, mutation: str) -> State:
    if mutation == "engine: keeps the calls of the last attendant":
        return s
    problem = "the engine empties the rings of a welcomed attendant" if s.attendant.at in _USES else ""
    return s._replace(to_engine=(), to_attendant=(), problem=problem)


def run(mutation: str = "") -> Result[State]:
    """Explores the slot.

    Args:
      mutation: One of MUTATIONS; empty: the protocol.

    Returns:
      The exploration's result.
    """

    def steps(s: State) -> Iterator[Step[State]]:
        if s.who < ATTENDANTS:
            yield from _attendant_steps(s, mutation)
        yield from _engine_steps(s, mutation)

    def at_rest(s: State) -> bool:
        return s.who == ATTENDANTS and not s.present and s.engine == "idle" and not s.leaver

    # Giving up is no way out of a wait on which a side may rely.
    return explore(State(), steps, lambda s: s.problem, at_rest, lambda label: label.endswith((" dies", "gives up")))


test_the_protocol_holds, test_each_mutation_breaks_the_protocol = model_tests(run, MUTATIONS)
