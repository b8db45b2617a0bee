"""The state of the model of workers: the region, its processes, and ghost variables."""

from typing import NamedTuple

from tests.model.explorer import with_quick_replace

Tag = tuple[int, int]  # the client's number (from 1), the number of its exchange or lane
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
    lanes: tuple[int, ...] = ()  # the greatest number of each client; (): none
    pauses: int = 0  # the greatest number; each ends


@with_quick_replace
class Worker(NamedTuple):
    """A worker, its slot, its rows, and what the client knows of it."""

    at: str = "looks for an order"
    counted: int = 0
    took: int = 1  # the number of the last order that it carried out
    going: bool = True
    restarted: bool = False  # a replacement, whose environments are not reset yet
    buffered: bool = False  # its store of done is not written yet
    met: int = 0  # in a scan: how many others are done
    laned: int = 0  # lanes completed
    # Its slot and its rows.
    done: int = 0
    ack: int = 1
    lane_go: int = 0
    lane_done: int = 0
    row: tuple[Tag, ...] = ()  # the exchanges and lanes applied since its reset
    action: tuple[int, ...] = ()  # the tag of its lane's actions
    flagged: bool = False  # its lane's flags are set
    # The client's: the number of its last lane; whether it is open, or about to be; what its row must show.
    lane: int = 0
    is_open: bool = False
    opens: bool = False
    want: tuple[Tag, ...] = ()
    # Ghost variable: the number of the exchange that its row shows.
    wrote: int = 0


@with_quick_replace
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
    stage_of: str = ""  # arrival, departure, resynchronisation or pause
    arriving: int = 0
    competing: str = ""  # its next step in an election
    saw: tuple[int, int] = (0, 0)  # `publisher`, as it was when it began to compete
    publishing: str = ""  # its next step in the end of an exchange
    number: int = 0  # of the exchange for which it competes, or which it publishes
    has_client: bool = False
    fresh_at: int = 0  # `activity` at the last reset; -1: a row was changed since
    deaths: int = 0  # so far
    pauses: int = 0  # so far
    # The client.
    who: int = 1
    client: str = "comes"
    seq: int = 0
    hello: int = 0
    sent: int = 0  # exchanges
    opened: int = 0  # lanes
    # Ghost variables.
    meddled: bool = False  # the stranger has written
    paused: bool = False  # a pause was answered, and has not ended
    sent_in_pause: bool = False  # the last exchange, in the pause that has not ended
    wrong: str = ""


def with_worker(s: State, index: int, worker: Worker, **others: object) -> State:
    """Returns the state with another worker of this index, and with other values of `State`."""
    workers = (*s.workers[:index], worker, *s.workers[index + 1 :])
    return s._replace(workers=workers, **others)  # type: ignore[arg-type]


def canonical(s: State) -> State:
    """Returns the same state for all that differ only in where the circle of the workers begins.

    No step depends on that: a scan begins behind its own worker.
    """
    workers = s.workers
    first = min(workers)
    if workers.count(first) == 1:
        return s if workers[0] is first else _turned(s, workers.index(first))
    return min((_turned(s, by) for by in range(len(workers))), key=lambda t: (t.workers, t.publisher, t.saw))


def _turned(s: State, by: int) -> State:
    count = len(s.workers)

    def winner(word: tuple[int, int]) -> tuple[int, int]:
        return word if word[1] == SUPERVISOR or word == (0, 0) else (word[0], (word[1] - by) % count)

    return s._replace(workers=s.workers[by:] + s.workers[:by], publisher=winner(s.publisher), saw=winner(s.saw))


def prepared(s: State, number: int) -> State:
    """Clears what the client wrote for the exchange, and writes its status."""
    wrong = "" if s.frame_seq == number - 1 else "the words of another exchange are cleared"
    return s._replace(kind=None, status=number, wrong=s.wrong or wrong)


def published(s: State, number: int) -> State:
    """Returns the state after the store of frame_seq."""
    wrong = ""
    if s.frame_seq != number - 1:
        wrong = "an exchange is published twice"
    elif any(w.wrote != number for w in s.workers):
        wrong = "an exchange is published before all rows are written"
    return s._replace(frame_seq=number, wrong=s.wrong or wrong)
