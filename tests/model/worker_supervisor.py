"""The supervisor of the model of workers.

step here                                     code
holds .. goes                                 SupervisorSide::Advance, one step for each stage
pauses, continues                             the same, for a pause that ends; SupervisorSide::WorkersAreHeld
competes, scans, elects                       EngineWorkers::TakeOver: its loads; AllDone, in one step; WinFrom
takes over, starts a replacement              EngineWorkers::TakeOver for a dead winner; Replace
ends the region                               SupervisorSide's destructor
"""

from collections.abc import Iterator

from tests.model.explorer import Step
from tests.model.worker_state import (
    COUNT,
    COUNT_AND_GO,
    FINISH,
    GO,
    HOLD,
    RESET,
    SUPERVISOR,
    Setting,
    State,
    prepared,
    published,
    with_worker,
)

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


def supervisor_steps(s: State, setting: Setting, mutation: str) -> Iterator[Step[State]]:
    """Yields the steps that the supervisor can do."""
    if s.publishing:
        label = f"supervisor {s.publishing}"
        if s.publishing == "prepares":
            yield label, prepared(s._replace(publishing="publishes"), s.number)
        else:
            yield label, published(s._replace(publishing="", number=0), s.number)
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
            if s.pauses < setting.pauses:
                at_once = mutation == "supervisor: answers a pause before its order"
                yield "supervisor pauses", s._replace(at="holds", stage_of="pause", pauses=s.pauses + 1, paused=at_once)
        case "holds":
            yield label, _ordered(s, HOLD)._replace(paused=s.stage_of == "pause")
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
                return
            if s.stage_of == "pause":
                drops = mutation == "supervisor: drops lanes in a pause"
                continued = (_without_lanes(s) if drops else s)._replace(at="counts", paused=False, sent_in_pause=False)
                yield "supervisor continues", continued
                return
            if mutation != "supervisor: drops no lanes":
                s = _without_lanes(s)
            if s.fresh_at == _activity(s, mutation):
                yield "supervisor needs no reset", s._replace(at="clears")
            elif early and s.stage_of == "arrival":
                yield label, _ordered(s, RESET)._replace(ack=s.arriving, has_client=True)
            else:
                yield label, _ordered(s, RESET)
        case "clears":
            arrives = s.stage_of == "arrival"
            count = s.action_seq if arrives else s.frame_seq
            cleared = following._replace(frame_seq=count)
            cleared = cleared._replace(fresh_at=_activity(cleared, mutation))
            if arrives or s.action_seq == count:
                cleared = cleared._replace(kind=None)
                if mutation != "supervisor: leaves the flags of dropped lanes":
                    cleared = cleared._replace(workers=tuple(w._replace(flagged=False) for w in s.workers))
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


def _activity(s: State, mutation: str) -> int:
    """Returns EngineWorkers::Activity."""
    lanes = mutation != "supervisor: counts no lanes"
    return s.frame_seq + (sum(w.lane_done for w in s.workers) if lanes else 0)


def _without_lanes(s: State) -> State:
    """Returns the state after EngineWorkers::DropLanes."""
    return s._replace(workers=tuple(w._replace(lane_go=w.lane_done) for w in s.workers))


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
        keeps = mutation in ("supervisor: leaves a dead winner's exchange", "supervisor: restarts before it takes over")
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
    lanes = w.lane_go if mutation == "worker: a replacement counts from lane_go" else w.lane_done
    replacement = w._replace(
        at="looks for an order",
        counted=count,
        took=w.ack,
        going=s.order_kind == GO and w.ack == s.order,
        restarted=True,
        laned=lanes,
    )
    return with_worker(s, index, replacement, fresh_at=-1)
