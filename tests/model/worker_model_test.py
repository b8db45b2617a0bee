"""A model of a region's workers, with all interleavings: each exchange is done once by each, and published once.

    step here                                     code
    looks for an order, looks for an exchange     WorkerSide::Ready, each load a step
    carries out, acknowledges                     WorkerSide::TakeOrder, its caller's reset; WorkerSide::Acknowledge
    reads the kind, applies                       WorkerSide::TakeExchange; its caller's step
    stores done, fences, scans, elects            WorkerSide::FinishExchange; WorkerElection::AllDone; Win
    prepares, publishes                           WorkerElection::Publish, up to the store of frame_seq; that store
    supervisor holds .. goes                      EngineSide::AdvanceWorkers, one step for each stage
    supervisor competes, scans, elects            EngineWorkers::TakeOver: its loads; AllDone, in one step; WinFrom
    supervisor takes over, starts a replacement   EngineWorkers::TakeOver for a dead winner; Replace
    supervisor ends the region                    EngineSide's destructor
    comes .. judges, leaves, dies                 ClientSide, as in session_client.py

A worker's store of `done` waits in a buffer until a separate step writes it to memory, before the worker's next release
store at the latest: of this store alone the protocol asks for more than a release. A worker or a client may die at any
step. After a worker's death the supervisor ends the region, or starts a replacement, whose first exchange resets its
rows instead of stepping them. In one setting a foreign program lowers action_seq once. The properties:

- Each exchange is published once, after all rows were written, by one process.
- Only the words of the exchange that ends are cleared, and a status belongs to the exchange that it is read for.
- An exchange that recv reports as Ok was applied once to each row, in its session, after a reset at the session's
  start, or after its worker's restart.
- From every state, without further deaths, each wait ends; without any death, also if the supervisor never competes.

The supervisor competes at any time. The code first waits for some milliseconds; the model has no time.

Length: one model, whose parts are one state.

Not modelled: lanes, which share no word with exchanges; doorbells, see doorbell_model_test.py; the supervisor's own
death, which is the engine's; reset flags, of which each worker clears only its own.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explorer import Result, Step, explore
from tests.model.model_tests import model_tests
from tools.testing import pytest_main

Tag = tuple[int, int]  # the client's number (from 1), the number of its exchange
RESTARTED: Tag = (0, 0)  # in a row: a replacement has reset it

SUPERVISOR = 9  # its index in `publisher`
HOLD, FINISH, RESET, COUNT, GO, COUNT_AND_GO = "hold", "finish", "reset", "count", "go", "count and go"


class Setting(NamedTuple):
    """The parameters of an exploration."""

    workers: int
    exchanges: tuple[int, ...]  # the greatest number of each client; the clients come one after the other
    deaths: int = 0  # of workers
    restarts: bool = False  # whether the supervisor starts a replacement; else it ends the region
    clients_die: bool = True  # else they only leave
    stranger: bool = False  # a foreign program lowers action_seq once
    lags: bool = False  # whether the supervisor loads, scans and elects in three steps; else in one


SETTINGS = (
    Setting(workers=2, exchanges=(1, 1)),
    Setting(workers=2, exchanges=(2,), deaths=1, lags=True),
    Setting(workers=2, exchanges=(2, 1), clients_die=False, stranger=True),
    Setting(workers=2, exchanges=(2,), deaths=1, restarts=True, lags=True),
    Setting(workers=3, exchanges=(2,), clients_die=False),
    Setting(workers=3, exchanges=(1,), deaths=1, restarts=True, clients_die=False),
    Setting(workers=2, exchanges=(1, 1), deaths=1, restarts=True, clients_die=False),
)

# Mutation -> the setting whose exploration finds it soonest, and what the side then does.
MUTATIONS = {
    "worker: no fence": (
        4,
        "its store of done may be written after its scan: two that finish together miss each other",
    ),
    "worker: scans before it stores done": (6, "the same, or it publishes too early"),
    "worker: stores done before it has stepped": (2, "the other publishes rows that are not written yet"),
    "worker: publishes without an election": (2, "each worker that finds all done publishes"),
    "worker: takes exchanges while it is held": (2, "it does not remember the order"),
    "worker: acknowledges before it carries out": (2, "the supervisor continues too early"),
    "worker: a replacement counts from frame_seq": (6, "not from its slot's done"),
    "worker: a replacement steps at once": (3, "its environments were not reset"),
    "supervisor: never competes": (3, "the last finisher's death leaves an exchange open"),
    "supervisor: elects by a late read": (
        1,
        "it reads the winner after its scan: other exchanges may have come meanwhile",
    ),
    "supervisor: leaves a dead winner's exchange": (6, "it does not publish in its place"),
    "supervisor: publishes for a live winner": (2, "it does not look at the winner's lock"),
    "supervisor: restarts before it takes over": (6, "the replacement holds the dead winner's lock"),
    "supervisor: does not finish a partial exchange": (0, "some workers have done it, and the reset comes"),
    "supervisor: goes back to frame_seq": (1, "workers that have done a partial exchange do it again"),
    "supervisor: does not wait for acknowledgements": (2, "it continues after its order"),
    "supervisor: acknowledges the client before the reset": (6, "the client sees the last session's rows"),
    "supervisor: sets the count and goes by one order": (2, "a worker compares its new count with the other's old one"),
    "supervisor: competes while it sets another count": (2, "the old counts look like those of the next exchange"),
    "supervisor: keeps the winner when it sets another count": (2, "the election of the next exchange is over already"),
    "supervisor: ends by exchange_status": (1, "a worker publishes another exchange with the text of the end"),
}


class Worker(NamedTuple):
    """A worker, and its slot."""

    at: str = "looks for an order"
    counted: int = 0
    took: int = 1  # the number of the last order that it carried out
    going: bool = True
    restarted: bool = False  # a replacement, whose environments are not reset yet
    buffered: bool = False  # its store of done is not written yet
    met: int = 0  # in a scan: how many others are done
    # Its slot and its rows.
    done: int = 0
    ack: int = 1
    row: tuple[Tag, ...] = ()  # the exchanges applied since its reset
    # Ghost variable: the number of the exchange that its row shows.
    wrote: int = 0


class State(NamedTuple):
    """The region, the workers, the supervisor and the client; and ghost variables, which only the properties read."""

    action_seq: int = 0
    action: Tag | None = None
    kind: Tag | None = None  # the words that an exchange's end clears
    frame_seq: int = 0
    status: int = 0  # of the exchange with this number; -1: of the region's end; -2: BrokenPeer
    request: int = 0
    ack: int = 0
    locked: bool = False  # by the client
    order: int = 1
    order_kind: str = GO
    order_value: int = 0
    publisher: tuple[int, int] = (0, SUPERVISOR)
    workers: tuple[Worker, ...] = ()
    # The supervisor.
    at: str = "idle"  # its stage
    stage_of: str = ""  # arrival, departure or resynchronisation
    arriving: int = 0
    competing: str = ""  # its next step in an election
    saw: tuple[int, int] = (0, 0)  # `publisher`, as it was when it began to compete
    publishing: str = ""  # its next step in the end of an exchange
    number: int = 0  # of the exchange for which it competes, or which it publishes
    has_client: bool = False
    fresh_at: int = 0  # frame_seq at the last reset; -1: a row was changed since
    deaths: int = 0  # so far
    # The client.
    who: int = 1
    client: str = "comes"
    seq: int = 0
    hello: int = 0
    sent: int = 0
    want: tuple[Tag, ...] = ()
    # Ghost variables.
    meddled: bool = False  # the stranger has written
    wrong: str = ""


# ----------------------------------------------------------------------------------------------------------- workers


def _with(s: State, index: int, worker: Worker, **others: object) -> State:
    workers = (*s.workers[:index], worker, *s.workers[index + 1 :])
    return s._replace(workers=workers, **others)  # type: ignore[arg-type]


def _following(mutation: str) -> dict[str, str]:
    """Returns the step after each step of an exchange that has only one."""
    names = ["reads the kind", "applies", "stores done", "fences", "scans"]
    if mutation == "worker: no fence":
        names.remove("fences")
    if mutation == "worker: scans before it stores done":
        names = ["reads the kind", "applies", "scans"]  # then stores done
    if mutation == "worker: stores done before it has stepped":
        names = ["reads the kind", "stores done", "applies", "fences", "scans"]
    return dict(zip(names, names[1:], strict=False))


def _end(s: State, worker: Worker) -> Worker:
    """Returns a worker that has ended its part of an exchange."""
    ordered = worker.took != s.order and s.order_kind == FINISH
    return worker._replace(at="acknowledges" if ordered else "looks for an order", met=0)


def _worker_steps(s: State, index: int, mutation: str) -> Iterator[Step[State]]:
    w = s.workers[index]
    name = f"worker {index + 1}"
    label = f"{name} {w.at}"
    after = _following(mutation)
    if w.buffered:
        yield f"{name}'s done is written", _with(s, index, w._replace(buffered=False, done=w.counted))
    match w.at:
        case "looks for an order":
            ordered = s.order != w.took
            early = mutation == "worker: acknowledges before it carries out"
            then = ("acknowledges early" if early else "carries out") if ordered else "looks for an exchange"
            if ordered or w.going or mutation == "worker: takes exchanges while it is held":
                yield label, _with(s, index, w._replace(at=then))
        case "looks for an exchange":
            found = s.action_seq == w.counted + 1
            yield label, _with(s, index, w._replace(at="reads the kind" if found else "looks for an order"))
        case "acknowledges early":
            yield label, _with(s, index, w._replace(at="carries out", ack=s.order))
        case "carries out":
            yield label, _with(s, index, _carried_out(s, w))
        case "acknowledges":
            done = w._replace(at="looks for an order", took=s.order, ack=s.order)
            if not w.buffered:  # a release store: done comes first
                yield label, _with(s, index, done)
        case "reads the kind":
            wrong = "" if s.kind == s.action else "the kind of an exchange is cleared before a worker reads it"
            yield label, _with(s, index, w._replace(at=after[w.at]), wrong=s.wrong or wrong)
        case "applies":
            tag = s.action or RESTARTED
            row = (RESTARTED,) if w.restarted else (*w.row, tag)
            if w.restarted and mutation == "worker: a replacement steps at once":
                row = (tag,)
            wrong = "an action is applied twice" if not w.restarted and tag in w.row else ""
            # With "stores done before it has stepped" the count is that of this exchange already.
            number = w.counted if after.get("stores done") == "applies" else w.counted + 1
            stepped = w._replace(at=after[w.at], row=row, restarted=False, wrote=number)
            yield label, _with(s, index, stepped, wrong=s.wrong or wrong)
        case "stores done":
            stored = w._replace(counted=w.counted + 1, buffered=True)
            if "stores done" in after:
                yield label, _with(s, index, stored._replace(at=after[w.at]))
            else:
                yield label, _with(s, index, _end(s, stored))
        case "fences":
            if not w.buffered:
                yield label, _with(s, index, w._replace(at=after[w.at]))
        case "scans":
            yield label, _scanned(s, index, mutation)
        case "elects":
            yield label, _elected(s, index, mutation)
        case "prepares":
            yield label, _prepared(_with(s, index, w._replace(at="publishes")), _number(w, mutation))
        case "publishes" if not w.buffered:  # as for "acknowledges"
            last = mutation == "worker: scans before it stores done"
            ended = w._replace(at="stores done", met=0) if last else _end(s, w)
            yield label, _published(_with(s, index, ended), _number(w, mutation))


def _number(w: Worker, mutation: str) -> int:
    return w.counted + 1 if mutation == "worker: scans before it stores done" else w.counted


def _carried_out(s: State, w: Worker) -> Worker:
    acknowledged = w._replace(at="acknowledges")
    match s.order_kind:
        case "hold":
            return acknowledged._replace(going=False)
        case "finish":
            return w._replace(at="reads the kind", going=False) if w.counted < s.order_value else acknowledged
        case "reset":
            return acknowledged._replace(row=(), restarted=False)
        case "count":
            return acknowledged._replace(counted=s.order_value, done=s.order_value, wrote=s.order_value)
        case "count and go":  # of a mutation
            return acknowledged._replace(counted=s.order_value, done=s.order_value, wrote=s.order_value, going=True)
    return acknowledged._replace(going=True)


def _scanned(s: State, index: int, mutation: str) -> State:
    w = s.workers[index]
    other = s.workers[(index + 1 + w.met) % len(s.workers)]
    last = mutation == "worker: scans before it stores done"
    if other.done != _number(w, mutation):
        return _with(s, index, w._replace(at="stores done", met=0) if last else _end(s, w))
    if w.met + 1 < len(s.workers) - 1:
        return _with(s, index, w._replace(met=w.met + 1))
    elects = mutation != "worker: publishes without an election"
    return _with(s, index, w._replace(at="elects" if elects else "prepares", met=0))


def _elected(s: State, index: int, mutation: str) -> State:
    w = s.workers[index]
    number = _number(w, mutation)
    if s.publisher[0] != number:
        return _with(s, index, w._replace(at="prepares"), publisher=(number, index))
    last = mutation == "worker: scans before it stores done"
    return _with(s, index, w._replace(at="stores done") if last else _end(s, w))


def _prepared(s: State, number: int) -> State:
    """Clears what the client wrote for the exchange, and writes its status."""
    wrong = "" if s.frame_seq == number - 1 else "the words of another exchange are cleared"
    return s._replace(kind=None, status=number, wrong=s.wrong or wrong)


def _published(s: State, number: int) -> State:
    wrong = ""
    if s.frame_seq != number - 1:
        wrong = "an exchange is published twice"
    elif any(w.wrote != number for w in s.workers):
        wrong = "an exchange is published before all rows are written"
    return s._replace(frame_seq=number, wrong=s.wrong or wrong)


def _death_steps(s: State, index: int, setting: Setting) -> Iterator[Step[State]]:
    w = s.workers[index]
    if w.at != "dead" and s.deaths < setting.deaths and s.at != "gone":
        # The kernel frees the lock after the processor has written all stores.
        done = w.counted if w.buffered else w.done
        dead = w._replace(at="dead", buffered=False, done=done, met=0, restarted=False, going=False)
        yield f"worker {index + 1} dies", _with(s, index, dead, deaths=s.deaths + 1)


# -------------------------------------------------------------------------------------------------------- supervisor

# The next stage, of those that the supervisor leaves by one step.
_STAGES = {
    "idle": "holds",
    "holds": "awaits held",
    "awaits held": "judges",
    "finishes": "awaits finished",
    "awaits finished": "settles",
    "settles": "resets",
    "resets": "awaits reset",
    "awaits reset": "clears",
    "clears": "answers",
    "answers": "counts",
    "counts": "awaits counted",
    "awaits counted": "goes",
    "goes": "awaits gone",
    "awaits gone": "idle",
}


def _ordered(s: State, kind: str, value: int = 0) -> State:
    return s._replace(at=_STAGES[s.at], order=s.order + 1, order_kind=kind, order_value=value)


def _publishes(s: State, number: int) -> State:
    return s._replace(publishing="prepares", competing="", saw=(0, 0), number=number)


def _supervisor_steps(s: State, setting: Setting, mutation: str) -> Iterator[Step[State]]:
    if s.publishing:
        label = f"supervisor {s.publishing}"
        if s.publishing == "prepares":
            yield label, _prepared(s._replace(publishing="publishes"), s.number)
        else:
            yield label, _published(s._replace(publishing="", number=0), s.number)
        return
    if s.competing:
        yield f"supervisor {s.competing}", _competed(s, mutation)
        return
    waits = s.at == "idle" or s.at.startswith("awaits")
    if waits:
        yield from _watch_steps(s, setting, mutation)
    label = f"supervisor {s.at}"
    following = s._replace(at=_STAGES.get(s.at, s.at))
    early = mutation == "supervisor: acknowledges the client before the reset"
    match s.at:
        case "idle":
            if s.request != s.ack:
                yield "supervisor sees a new client", s._replace(at="holds", stage_of="arrival", arriving=s.request)
            elif s.has_client and not s.locked:
                left = s._replace(at="holds", stage_of="departure", has_client=False)
                yield "supervisor sees that the client left", left
            elif s.action_seq - s.frame_seq not in (0, 1):
                # Only if it persists; here, at any time.
                yield "supervisor sees an invalid count", s._replace(at="holds", stage_of="resynchronisation")
        case "holds":
            yield label, _ordered(s, HOLD)
        case "awaits held" | "awaits finished" | "awaits reset" | "awaits counted" | "awaits gone":
            if mutation == "supervisor: does not wait for acknowledgements":
                yield label, following
            elif all(w.ack == s.order for w in s.workers):
                yield label, following
        case "judges":
            begun = any(w.done == s.frame_seq + 1 for w in s.workers)
            pending = s.stage_of == "arrival" and s.action_seq == s.frame_seq + 1
            skips = mutation in ("supervisor: does not finish a partial exchange", "supervisor: goes back to frame_seq")
            number = s.frame_seq + 1
            if all(w.done == number for w in s.workers):
                # All are held: no worker publishes it.
                yield label, _publishes(s._replace(at="resets"), number)
            elif mutation == "supervisor: goes back to frame_seq" and begun:
                yield label, s._replace(at="counts", stage_of="resynchronisation")
            elif (begun or pending) and not skips:
                yield label, s._replace(at="finishes")
            else:
                yield label, s._replace(at="resets")
        case "finishes":
            yield label, _ordered(s, FINISH, s.frame_seq + 1)
        case "settles":
            # All have acknowledged: no worker is in an election.
            number = s.frame_seq + 1
            if all(w.done == number for w in s.workers):
                yield label, _publishes(following, number)
            else:
                yield label, following
        case "resets":
            if s.stage_of == "resynchronisation":
                broken = s._replace(at="counts", frame_seq=s.action_seq, status=-2, fresh_at=-1)
                yield "supervisor writes the error", broken
            elif s.fresh_at == s.frame_seq:
                yield "supervisor needs no reset", s._replace(at="clears")
            elif early and s.stage_of == "arrival":
                yield label, _ordered(s, RESET)._replace(ack=s.arriving, has_client=True)
            else:
                yield label, _ordered(s, RESET)
        case "clears":
            arrives = s.stage_of == "arrival"
            count = s.action_seq if arrives else s.frame_seq
            cleared = following._replace(frame_seq=count, fresh_at=count)
            if arrives or s.action_seq == count:
                cleared = cleared._replace(kind=None)
            yield label, cleared
        case "answers":
            if s.stage_of == "arrival":
                yield label, following._replace(ack=s.arriving, has_client=True)
            else:
                yield label, following
        case "counts":
            keeps = mutation == "supervisor: keeps the winner when it sets another count"
            publisher = s.publisher if keeps else (s.frame_seq, SUPERVISOR)
            if all(w.done == s.frame_seq for w in s.workers):
                yield "supervisor has the workers' count", s._replace(at="goes")
            elif mutation == "supervisor: sets the count and goes by one order":
                both = _ordered(s, COUNT_AND_GO, s.frame_seq)
                yield label, both._replace(publisher=publisher, at="awaits gone")
            else:
                yield label, _ordered(s, COUNT, s.frame_seq)._replace(publisher=publisher)
        case "goes":
            yield label, _ordered(s, GO)


def _watch_steps(s: State, setting: Setting, mutation: str) -> Iterator[Step[State]]:
    """Yields what the supervisor does beside its stages: it competes, and learns of deaths."""
    number = s.frame_seq + 1
    elected, winner = s.publisher
    competes = mutation != "supervisor: never competes"
    counts = s.at == "awaits counted" and mutation != "supervisor: competes while it sets another count"
    # Loads before all have done the exchange lead to the same elections as these, or to none.
    if competes and not counts and elected != number and all(w.done == number for w in s.workers):
        loaded = s._replace(competing="scans", saw=s.publisher, number=number)
        at_once = _competed(loaded._replace(competing="elects"), mutation)
        yield "supervisor competes", loaded if setting.lags else at_once
    if mutation == "supervisor: publishes for a live winner" and elected == number:
        yield "supervisor takes over", _publishes(s, number)
    for index, w in enumerate(s.workers):
        if w.at != "dead":
            continue
        if not setting.restarts:
            if mutation == "supervisor: ends by exchange_status":
                yield "supervisor writes the end", s._replace(status=-1, at="gone")
            else:
                yield "supervisor ends the region", s._replace(at="gone")
            continue
        won = elected == number and winner == index
        keeps = mutation in (
            "supervisor: leaves a dead winner's exchange",
            "supervisor: restarts before it takes over",
        )
        if won and not keeps:
            yield "supervisor takes over", _publishes(s, number)
            continue
        yield "supervisor starts a replacement", _replaced(s, index, mutation)
    if mutation == "supervisor: restarts before it takes over" and elected == number and winner != SUPERVISOR:
        if s.workers[winner].at == "dead":
            yield "supervisor takes over", _publishes(s, number)


def _competed(s: State, mutation: str) -> State:
    """Returns the state after a step of the supervisor's election."""
    lost = s._replace(competing="", saw=(0, 0), number=0)
    if s.competing == "scans":
        return s._replace(competing="elects") if all(w.done == s.number for w in s.workers) else lost
    late = mutation == "supervisor: elects by a late read"
    if s.publisher[0] == s.number or (s.publisher != s.saw and not late):
        return lost
    return _publishes(s._replace(publisher=(s.number, SUPERVISOR)), s.number)


def _replaced(s: State, index: int, mutation: str) -> State:
    w = s.workers[index]
    count = s.frame_seq if mutation == "worker: a replacement counts from frame_seq" else w.done
    replacement = w._replace(
        at="looks for an order",
        counted=count,
        took=w.ack,
        going=s.order_kind == GO and w.ack == s.order,
        restarted=True,
    )
    return _with(s, index, replacement, fresh_at=-1)


# ------------------------------------------------------------------------------------------------------------ client


def _client_steps(s: State, setting: Setting) -> Iterator[Step[State]]:
    name = f"client {s.who}"
    label = f"{name} {s.client}"
    gone = s.at == "gone"
    match s.client:
        case "comes":
            if not gone:
                yield label, s._replace(client="says hello", locked=True)
            return
        case "says hello":
            hello = s.request + (2 if s.request + 1 == s.ack else 1)
            yield label, s._replace(client="is welcome", request=hello, hello=hello)
        case "is welcome":
            if s.ack == s.hello:
                yield label, s._replace(client="repeats the count", seq=s.frame_seq, wrong=s.wrong or _stale(s))
            elif gone:
                yield f"{name} finds the engine gone", s._replace(client="lost")
        case "repeats the count":
            yield label, s._replace(client="chooses", action_seq=s.seq)
        case "chooses":
            if setting.stranger and not s.meddled and s.seq > 0:
                yield "stranger writes action_seq", s._replace(meddled=True, action_seq=s.seq - 1)
            if s.sent < setting.exchanges[s.who - 1]:
                tag = (s.who, s.sent + 1)
                chosen = s._replace(client="posts", action=tag, kind=tag, want=(*s.want, tag), sent=s.sent + 1)
                yield f"{name} writes an action", chosen
        case "posts":
            yield label, s._replace(client="receives", action_seq=s.seq + 1)
        case "receives":
            if s.frame_seq == s.seq + 1:
                yield label, s._replace(client="judges")
            elif s.frame_seq not in (s.seq, s.seq + 1):
                yield f"{name} finds another session", s._replace(client="lost")
            elif gone:
                yield f"{name} finds the engine gone", s._replace(client="looks once more")
        case "looks once more":
            yield label, s._replace(client="judges" if s.frame_seq == s.seq + 1 else "lost")
        case "judges":
            yield label, _judged(s)
    if s.client in ("chooses", "lost") or setting.clients_die:
        after = s._replace(who=s.who + 1, client="comes", locked=False, seq=0, hello=0, sent=0, want=())
        at_ease = s.client in ("chooses", "lost")
        yield f"{name} {'leaves' if at_ease else 'dies'}", after


def _stale(s: State) -> str:
    return "" if all(w.row == () for w in s.workers) else "a new client sees the last session's rows"


def _judged(s: State) -> State:
    wrong = ""
    if s.status == -2 or s.ack != s.hello:
        return s._replace(client="lost", wrong=s.wrong or ("" if s.meddled else "BrokenPeer without a fault"))
    if s.status != s.seq + 1:
        wrong = f"the status is that of exchange {s.status}"
    for w in s.workers:
        if w.row != s.want and not (w.row[:1] == (RESTARTED,) and w.row[1:] in _ends(s.want)):
            wrong = wrong or f"Ok, but a row shows {w.row}, expected {s.want}"
    return s._replace(client="chooses", seq=s.seq + 1, wrong=s.wrong or wrong)


def _ends(tags: tuple[Tag, ...]) -> list[tuple[Tag, ...]]:
    return [tags[first:] for first in range(1, len(tags) + 1)]


# ------------------------------------------------------------------------------------------------------- exploration


def explore_setting(setting: Setting, mutation: str = "") -> Result[State]:
    """Explores a setting.

    Args:
      setting: The setting.
      mutation: One of MUTATIONS; empty: the protocol.

    Returns:
      The exploration's result.
    """

    def steps(s: State) -> Iterator[Step[State]]:
        if s.who <= len(setting.exchanges):
            yield from _client_steps(s, setting)
        if s.at != "gone":
            yield from _supervisor_steps(s, setting, mutation)
        for index in range(setting.workers):
            yield from _worker_steps(s, index, mutation)
            yield from _death_steps(s, index, setting)

    def at_rest(s: State) -> bool:
        at_ease = s.client in ("chooses", "lost") or (s.client == "comes" and s.at == "gone")
        quiet = s.at == "gone" or (s.at == "idle" and not s.publishing and not s.competing)
        wait = all(w.at in ("looks for an order", "looks for an exchange", "dead") for w in s.workers)
        return (at_ease or s.who > len(setting.exchanges)) and quiet and wait

    def is_failure(label: str) -> bool:
        # While all workers live, no exchange relies on the supervisor.
        return label.endswith((" dies", " leaves")) or (label == "supervisor competes" and setting.deaths == 0)

    initial = State(workers=(Worker(),) * setting.workers)
    return explore(initial, steps, lambda s: s.wrong, at_rest, is_failure)


def run(mutation: str = "") -> Result[State]:
    """Explores all settings, up to the first with a problem; for a mutation, its setting.

    Args:
      mutation: One of MUTATIONS; empty: the protocol.

    Returns:
      The result of the setting with a problem; else a result with the states of all settings.
    """
    if mutation:
        return explore_setting(SETTINGS[MUTATIONS[mutation][0]], mutation)
    states = 0
    for setting in SETTINGS:
        result = explore_setting(setting, "")
        states += result.states
        if result.problem:
            return result
        print(f"{setting}: {result.states} states")
    return Result(states)


test_the_protocol_holds, test_each_mutation_breaks_the_protocol = model_tests(run, MUTATIONS)


if __name__ == "__main__":
    pytest_main.run(__file__)
