"""Each memory order in the transport is strong enough, and necessary, in the models of weak_protocols.py."""

import functools
import itertools
from pathlib import Path

import pytest

from tests.model.weak_memory import Half, Machine, Model, Thread, add, fence, load, read, store, write
from tests.model.weak_protocols import LARGER, MODELS
from tools.checks.memory_order import labelled_operations

_ROOT = Path(__file__).parent.parent.parent
_FOLDERS = ("transport/frames", "transport/ring", "transport/session", "transport/wait")
_STRENGTH = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")

# The order of each half in the code: the weakest, where a function has two such operations.
ORDERS: dict[Half, str] = {}
for _operation in labelled_operations(_ROOT, _FOLDERS):
    _half = (" ".join(_operation.labels), _operation.function, _operation.kind)
    ORDERS[_half] = min(ORDERS.get(_half, "seq_cst"), _operation.order, key=_STRENGTH.index)

_FINISH = ("workers.finish", "WorkerSide::Core::FinishExchange", "fence")
# Halves that are necessary only without another one.
COVERED: dict[Half, Half] = {
    ("flan.commit", "FrameReader::Read", "load"): ("flan.seq", "FrameReader::CopyOut", "fence"),
    ("flan.seq", "FrameReader::CopyOut", "fence"): ("flan.commit", "FrameReader::Read", "load"),
    ("flan.seq", "FrameWriter::End", "fence"): ("flan.commit", "FrameWriter::End", "store"),
    ("workers.publisher", "WorkerElection::WinFrom", "rmw"): _FINISH,
}
# Weaker orders with which no state is wrong, and why.
UNSHOWN: dict[tuple[str, ...], str] = {
    ("attendant.hello", "AttendantSide::Close", "store", "relaxed"): "the lock orders the next attendant behind it",
    ("doorbell.dekker", "Doorbell::NotifyAll", "fence", "acq_rel"): "it is used as a release fence",
    ("lockstep.frame", "EngineWorkers::TakeOver", "load", "relaxed"): "AllDone's acquire orders it, a later number",
    ("ring.commit", "ResetRing", "store", "relaxed"): "the engine's welcome follows, a release",
    ("ring.free", "ResetRing", "store", "relaxed"): "the engine's welcome follows, a release",
}


@functools.cache
def _problem(name: str, *weaker: tuple[Half, str]) -> str:
    """Returns the problem in a model, with the way to it, if some halves have weaker orders."""
    result = Machine((MODELS | LARGER)[name], ORDERS | dict(weaker)).explore()
    print(f"{name}: {result.states} states")
    return result.problem and "\n".join([result.problem, *(label for label, _ in result.trace)])


@functools.cache
def _halves_of(name: str) -> set[Half]:
    machine = Machine(MODELS[name], ORDERS)
    machine.explore()
    return machine.halves


@pytest.mark.parametrize("name", (*MODELS, *LARGER))
def test_the_orders_in_the_code_are_strong_enough(name: str) -> None:
    """No state has a problem."""
    assert not _problem(name), _problem(name)


@pytest.mark.parametrize("half", ORDERS, ids=" ".join)
def test_each_order_in_the_code_is_necessary(half: Half) -> None:
    """A weaker one leads to a problem: in a model that has the half, else in the model of its pair alone."""
    assert {row[:3] for row in UNSHOWN} <= ORDERS.keys()
    names = [name for name in MODELS if half in _halves_of(name)]
    for order in ("relaxed", "acq_rel") if ORDERS[half] == "seq_cst" else ("relaxed",):
        found = [problem for name in names if (problem := _problem(name, (half, order)))]
        if (*half, order) in UNSHOWN or half in COVERED:
            assert names and not found, found
        elif names:
            assert found, f"nothing is wrong with {order} in {', '.join(names)}"
            print(f"{half}, {order}: {min(found, key=len)}")
        else:
            pairs = _pairs_of(half)
            assert pairs, "no model has this half"
            assert not any(Machine(pair, ORDERS).explore().problem for pair in pairs)
            assert all(Machine(pair, ORDERS | {half: order}).explore().problem for pair in pairs)


@pytest.mark.parametrize(("half", "cover"), COVERED.items(), ids=lambda half: " ".join(half))
def test_one_of_two_orders_is_necessary(half: Half, cover: Half) -> None:
    """In a model, each of the two is enough."""
    names = [name for name in MODELS if {half, cover} <= _halves_of(name) and not _problem(name, (cover, "relaxed"))]
    assert any(_problem(name, (half, "relaxed"), (cover, "relaxed")) for name in names)


def _publishes(half: Half) -> Thread:
    if half[2] == "fence":
        yield store("early", 1)
        yield fence(*half[:2])
        yield store("late", 1)
    else:
        yield write("data", 1)
        yield store("late", 1, *half[:2]) if half[2] == "store" else add("late", 1, *half[:2])
    return None


def _observes(half: Half) -> Thread:
    if half[2] == "fence":
        late = yield load("late")
        yield fence(*half[:2])
        early = yield load("early")
    else:
        late = yield load("late", *half[:2]) if half[2] == "load" else add("late", 1, *half[:2])
        early = (yield read("data")) if late == 1 else 0
    assert (early, late) != (0, 1), "the later value is seen, the earlier one is not"
    return None


def _pairs_of(half: Half) -> list[Model]:
    """Returns models of the half with each partner: one publishes a value, the other one observes it."""
    models = []
    for publisher, observer in itertools.product(ORDERS, ORDERS):
        orders = (ORDERS[publisher], ORDERS[observer])
        alike = (publisher[2] == "fence") == (observer[2] == "fence") and publisher[0] == observer[0]
        if half in (publisher, observer) and alike and orders == ("release", "acquire"):
            threads = {"publisher": (_publishes, publisher), "observer": (_observes, observer)}
            models.append(Model(threads, {"early": 0, "late": 0}, {"data": 0}))
    return models
