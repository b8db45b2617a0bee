"""The workers of the model.

step here                                     code
looks for an order, looks for an exchange     WorkerSide::Ready, each load a step
has found an exchange, has found a lane       WorkerSide::Take: looks for an order again
carries out, acknowledges                     WorkerSide::TakeOrder, its caller's reset; WorkerSide::Acknowledge
reads the kind, applies                       WorkerSide::TakeExchange; its caller's step
stores done, fences, scans, elects            WorkerSide::FinishExchange; WorkerElection::AllDone; Win
prepares, publishes                           WorkerElection::Publish, up to the store of frame_seq; that store
looks for a lane                              WorkerSide::HasLane
steps its lane, stores lane_done              its caller's step, and Finish; WorkerSide::FinishLane
"""

from collections.abc import Iterator

from tests.model.explorer import Step
from tests.model.worker_state import FINISH, RESTARTED, Setting, State, Tag, Worker, prepared, published, with_worker


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


def worker_steps(s: State, index: int, setting: Setting, mutation: str) -> Iterator[Step[State]]:
    """Yields the steps that the worker can do."""
    w = s.workers[index]
    name = f"worker {index + 1}"
    label = f"{name} {w.at}"
    after = _following(mutation)
    if w.buffered:
        yield f"{name}'s done is written", with_worker(s, index, w._replace(buffered=False, done=w.counted))
    match w.at:
        case "looks for an order" | "has found an exchange" | "has found a lane":
            then = _after_look(s, w, mutation)
            if then != "looks for an exchange" or w.going or mutation == "worker: takes exchanges while it is held":
                yield label, with_worker(s, index, w._replace(at=then))
        case "looks for an exchange":
            found = s.action_seq == w.counted + 1
            then = "looks for a lane" if setting.lanes else "looks for an order"
            yield label, with_worker(s, index, w._replace(at="has found an exchange" if found else then))
        case "looks for a lane":
            found = w.lane_go == w.laned + 1
            yield label, with_worker(s, index, w._replace(at="has found a lane" if found else "looks for an order"))
        case "steps its lane" | "stores lane_done" if not w.buffered:  # as for "acknowledges"
            yield label, _laned(s, index, mutation)
        case "acknowledges early":
            yield label, with_worker(s, index, w._replace(at="carries out", ack=s.order))
        case "carries out":
            yield label, with_worker(s, index, _carried_out(s, w))
        case "acknowledges":
            done = w._replace(at="looks for an order", took=s.order, ack=s.order)
            if not w.buffered:  # a release store: done comes first
                yield label, with_worker(s, index, done)
        case "reads the kind":
            wrong = "" if s.kind == s.action else "the kind of an exchange is cleared before a worker reads it"
            if s.sent_in_pause:
                wrong = "an exchange that is sent after a pause's answer is done in the pause"
            yield label, with_worker(s, index, w._replace(at=after[w.at]), wrong=s.wrong or wrong)
        case "applies":
            tag = s.action or RESTARTED
            row = (RESTARTED,) if w.restarted else (*w.row, tag)
            if w.restarted and mutation == "worker: a replacement steps at once":
                row = (tag,)
            wrong = _wrong_if_applied(w, tag)
            if w.flagged:
                wrong = wrong or "an exchange finds the flags of a lane"
            # With "stores done before it has stepped" the count is that of this exchange already.
            number = w.counted if after.get("stores done") == "applies" else w.counted + 1
            stepped = w._replace(at=after[w.at], row=row, restarted=False, wrote=number)
            yield label, with_worker(s, index, stepped, wrong=s.wrong or wrong)
        case "stores done":
            stored = w._replace(counted=w.counted + 1, buffered=True)
            if "stores done" in after:
                yield label, with_worker(s, index, stored._replace(at=after[w.at]))
            else:
                yield label, with_worker(s, index, _end(s, stored))
        case "fences":
            if not w.buffered:
                yield label, with_worker(s, index, w._replace(at=after[w.at]))
        case "scans":
            yield label, _scanned(s, index, mutation)
        case "elects":
            yield label, _elected(s, index, mutation)
        case "prepares":
            yield label, prepared(with_worker(s, index, w._replace(at="publishes")), _number(w, mutation))
        case "publishes" if not w.buffered:  # as for "acknowledges"
            last = mutation == "worker: scans before it stores done"
            ended = w._replace(at="stores done", met=0) if last else _end(s, w)
            yield label, published(with_worker(s, index, ended), _number(w, mutation))


def _wrong_if_applied(w: Worker, tag: Tag) -> str:
    return "an action is applied twice" if not w.restarted and tag in w.row else ""


def _after_look(s: State, w: Worker, mutation: str) -> str:
    """Returns the step after a look for an order."""
    trusts = mutation == "worker: looks for no order after it has found an exchange"
    if s.order != w.took and not (trusts and w.at == "has found an exchange"):
        return "acknowledges early" if mutation == "worker: acknowledges before it carries out" else "carries out"
    if w.at == "has found an exchange":
        return "reads the kind"
    if w.at == "has found a lane":
        early = mutation == "worker: stores lane_done before it has stepped"
        return "stores lane_done" if early else "steps its lane"
    return "looks for an exchange"


def _laned(s: State, index: int, mutation: str) -> State:
    """Returns the state after a worker's step in a lane."""
    w = s.workers[index]
    early = mutation == "worker: stores lane_done before it has stepped"
    if w.at == "steps its lane":
        tag = (w.action[0], w.action[1]) if w.action else RESTARTED
        steps_at_once = mutation == "worker: a replacement steps its lane at once"
        resets = w.restarted and not steps_at_once
        stepped = w._replace(
            at="looks for an order" if early else "stores lane_done",
            row=(RESTARTED,) if resets else (*w.row, tag),
            restarted=False,
            flagged=w.flagged and mutation == "worker: leaves its lane's flags",
        )
        wrong = "" if w.flagged or resets else "a lane finds no flags"
        return with_worker(s, index, stepped, wrong=s.wrong or _wrong_if_applied(w, tag) or wrong)
    stored = w._replace(at="steps its lane" if early else "looks for an order", laned=w.laned + 1)
    return with_worker(s, index, stored._replace(lane_done=stored.laned))


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
        return with_worker(s, index, w._replace(at="stores done", met=0) if last else _end(s, w))
    if w.met + 1 < len(s.workers) - 1:
        return with_worker(s, index, w._replace(met=w.met + 1))
    elects = mutation != "worker: publishes without an election"
    return with_worker(s, index, w._replace(at="elects" if elects else "prepares", met=0))


def _elected(s: State, index: int, mutation: str) -> State:
    w = s.workers[index]
    number = _number(w, mutation)
    if s.publisher[0] != number:
        return with_worker(s, index, w._replace(at="prepares"), publisher=(number, index))
    last = mutation == "worker: scans before it stores done"
    return with_worker(s, index, w._replace(at="stores done") if last else _end(s, w))


def death_steps(s: State, index: int, setting: Setting) -> Iterator[Step[State]]:
    """Yields the worker's death, if one is left."""
    w = s.workers[index]
    if w.at != "dead" and s.deaths < setting.deaths and s.at != "gone":
        # The kernel frees the lock after the processor has written all stores.
        done = w.counted if w.buffered else w.done
        dead = w._replace(at="dead", buffered=False, done=done, met=0, restarted=False, going=False)
        yield f"worker {index + 1} dies", with_worker(s, index, dead, deaths=s.deaths + 1)
