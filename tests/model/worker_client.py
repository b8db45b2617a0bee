"""The clients of the model of workers.

step here                                     code
comes .. judges, leaves, dies                 ClientSide, as in session_client.py
repeats the count                             its count of each worker's lanes, too: LaneSide::CloseAll
chooses a lane, opens a lane                  LaneSide::Send, up to a store of lane_go; that store
receives a lane                               LaneSide::Recv, as soon as one is ready
"""

from collections.abc import Iterator

from tests.model.explorer import Step
from tests.model.worker_state import RESTARTED, Setting, State, Tag, Worker, with_worker


def client_steps(s: State, setting: Setting, mutation: str) -> Iterator[Step[State]]:
    """Yields the steps that the client can do, up to its end; after it comes the next one."""
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
            hailed = s._replace(client="is welcome", request=hello, hello=hello)
            if mutation == "client: counts lanes before it is welcome":
                hailed = _with_lane_counts(hailed)
            yield label, hailed
        case "is welcome":
            if s.ack == s.hello:
                yield label, s._replace(client="repeats the count", seq=s.frame_seq, wrong=s.wrong or _stale(s))
            elif gone:
                yield f"{name} finds the engine gone", s._replace(client="lost")
        case "repeats the count":
            counts = mutation not in ("client: counts lanes before it is welcome", "client: counts lanes from 0")
            yield label, (_with_lane_counts(s) if counts else s)._replace(client="chooses", action_seq=s.seq)
        case "chooses":
            if setting.stranger and not s.meddled and s.seq > 0:
                yield "stranger writes action_seq", s._replace(meddled=True, action_seq=s.seq - 1)
            if setting.lanes:
                yield from _lane_steps(s, setting, mutation)
            waits = any(w.is_open for w in s.workers) and mutation != "client: sends an exchange beside a lane"
            if s.sent < setting.exchanges[s.who - 1] and not waits:
                tag = (s.who, s.sent + s.opened + 1)
                workers = tuple(w._replace(want=(*w.want, tag)) for w in s.workers)
                chosen = s._replace(client="posts", action=tag, kind=tag, workers=workers, sent=s.sent + 1)
                yield f"{name} writes an action", chosen
            if gone and any(w.is_open for w in s.workers):
                yield f"{name} finds the engine gone", s._replace(client="lost")
        case "opens a lane" | "writes its action late":
            index = next(index for index, w in enumerate(s.workers) if w.opens)
            yield label, _opened(s, index, s.client == "opens a lane", mutation)
        case "posts":
            yield label, s._replace(client="receives", action_seq=s.seq + 1, sent_in_pause=s.paused)
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
        workers = tuple(w._replace(lane=0, is_open=False, opens=False, want=()) for w in s.workers)
        after = s._replace(
            who=s.who + 1, client="comes", locked=False, seq=0, hello=0, sent=0, opened=0, workers=workers
        )
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
        wrong = wrong or _wrong_row(w)
    return s._replace(client="chooses", seq=s.seq + 1, wrong=s.wrong or wrong)


def _ends(tags: tuple[Tag, ...]) -> list[tuple[Tag, ...]]:
    return [tags[first:] for first in range(1, len(tags) + 1)]


def _wrong_row(w: Worker) -> str:
    if w.row == w.want or (w.row[:1] == (RESTARTED,) and w.row[1:] in _ends(w.want)):
        return ""
    return f"Ok, but a row shows {w.row}, expected {w.want}"


def _with_lane_counts(s: State) -> State:
    """Returns the state after LaneSide::CloseAll."""
    return s._replace(workers=tuple(w._replace(lane=w.lane_done) for w in s.workers))


def _lane_steps(s: State, setting: Setting, mutation: str) -> Iterator[Step[State]]:
    """Yields what a client that waits for no exchange does with lanes."""
    name = f"client {s.who}"
    late = mutation == "client: opens a lane before it writes the action"
    for index, w in enumerate(s.workers):
        if w.is_open and w.lane_done == w.lane:
            received = with_worker(s, index, w._replace(is_open=False), wrong=s.wrong or _wrong_row(w))
            yield f"{name} receives a lane of worker {index + 1}", received
        elif not w.is_open and s.opened < setting.lanes[s.who - 1]:
            tag = (s.who, s.sent + s.opened + 1)
            chosen = w._replace(opens=True, want=(*w.want, tag))
            if not late:
                chosen = chosen._replace(action=tag, flagged=True)
            label = f"{name} chooses a lane of worker {index + 1}"
            yield label, with_worker(s, index, chosen, client="opens a lane", opened=s.opened + 1)


def _opened(s: State, index: int, stores: bool, mutation: str) -> State:
    """Returns the state after the store of lane_go; or, with a mutation, after that of the action."""
    w = s.workers[index]
    if not stores:
        written = w._replace(opens=False, action=w.want[-1], flagged=True)
        return with_worker(s, index, written, client="chooses")
    late = mutation == "client: opens a lane before it writes the action"
    opened = w._replace(opens=late, is_open=True, lane=w.lane + 1, lane_go=w.lane + 1)
    return with_worker(s, index, opened, client="writes its action late" if late else "chooses")
