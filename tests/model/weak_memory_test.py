"""The classical tests of memory models: which outcomes weak_memory.py allows, by the orders of the operations.

Their names are those of the literature; Alglave et al., "Herding cats" (2014), draws them.
"""

from typing import Any

import pytest

from tests.model.weak_memory import Machine, Model, Op, State, Thread, add, fence, load, read, rmw, store, write

Ops = tuple[Op, ...]


def _thread(ops: Ops) -> Thread:
    for op in ops:
        _ = yield op
    return None


def _machine(*threads: Ops) -> Machine:
    """Runs threads over the words x and y and the data d."""
    programs = {f"thread {number}": (_thread, ops) for number, ops in enumerate(threads, 1)}
    return Machine(Model(programs, {"x": 0, "y": 0}, {"d": 0}), {})


_WX, _WY, _RX, _RY = store("x", 1), store("y", 1), load("x"), load("y")
_REL_Y, _ACQ_Y, _ACQ_X = store("y", 1, "release"), load("y", "acquire"), load("x", "acquire")
_REL, _ACQ, _BOTH, _SC = fence("release"), fence("acquire"), fence("acq_rel"), fence("seq_cst")
_WX2, _WY2 = store("x", 2), store("y", 2)

# (name, threads, loads in the order of the threads, last values of x and y or None for any, whether C++ allows it)
LITMUS: list[tuple[str, list[Ops], tuple[int, ...], tuple[int, int] | None, bool]] = [
    ("MP relaxed", [(_WX, _WY), (_RY, _RX)], (1, 0), None, True),
    ("MP release only", [(_WX, _REL_Y), (_RY, _RX)], (1, 0), None, True),
    ("MP acquire only", [(_WX, _WY), (_ACQ_Y, _RX)], (1, 0), None, True),
    ("MP release, acquire", [(_WX, _REL_Y), (_ACQ_Y, _RX)], (1, 0), None, False),
    ("MP fences", [(_WX, _REL, _WY), (_RY, _ACQ, _RX)], (1, 0), None, False),
    ("MP release fence, acquire", [(_WX, _REL, _WY), (_ACQ_Y, _RX)], (1, 0), None, False),
    ("MP release, acquire fence", [(_WX, _REL_Y), (_RY, _ACQ, _RX)], (1, 0), None, False),
    ("MP fences of the other kind", [(_WX, _ACQ, _WY), (_RY, _REL, _RX)], (1, 0), None, True),
    ("MP release sequence", [(_WX, _REL_Y), (add("y", 1),), (_ACQ_Y, _RX)], (1, 2, 0), None, False),
    ("MP store behind the release", [(_WX, _REL_Y, _WY2), (_ACQ_Y, _RX)], (2, 0), None, True),
    ("WRC relaxed", [(_WX,), (_RX, _WY), (_RY, _RX)], (1, 1, 0), None, True),
    ("WRC release, acquire", [(_WX,), (_RX, _REL_Y), (_ACQ_Y, _RX)], (1, 1, 0), None, False),
    ("SB relaxed", [(_WX, _RY), (_WY, _RX)], (0, 0), None, True),
    ("SB release, acquire", [(store("x", 1, "release"), _ACQ_Y), (_REL_Y, _ACQ_X)], (0, 0), None, True),
    ("SB acq_rel fences", [(_WX, _BOTH, _RY), (_WY, _BOTH, _RX)], (0, 0), None, True),
    ("SB one seq_cst fence", [(_WX, _SC, _RY), (_WY, _RX)], (0, 0), None, True),
    ("SB seq_cst fences", [(_WX, _SC, _RY), (_WY, _SC, _RX)], (0, 0), None, False),
    ("LB relaxed", [(_RX, _WY), (_RY, _WX)], (1, 1), None, False),
    ("IRIW acquire", [(_WX,), (_WY,), (_ACQ_X, _ACQ_Y), (_ACQ_Y, _ACQ_X)], (1, 0, 1, 0), None, True),
    ("IRIW acq_rel fences", [(_WX,), (_WY,), (_RX, _BOTH, _RY), (_RY, _BOTH, _RX)], (1, 0, 1, 0), None, True),
    ("IRIW seq_cst fences", [(_WX,), (_WY,), (_RX, _SC, _RY), (_RY, _SC, _RX)], (1, 0, 1, 0), None, False),
    ("CoRR", [(_WX, _WX2), (_RX, _RX)], (2, 1), None, False),
    ("CoRR of two writers", [(_WX,), (_WX2,), (_RX, _RX), (_RX, _RX)], (1, 2, 2, 1), None, False),
    ("CoWR", [(_WX, _RX), (_WX2,)], (0,), None, False),
    ("CoRW", [(_RX, _WX), (_WX2,)], (2,), (2, 0), False),
    ("2+2W relaxed", [(_WX, _WY2), (_WY, _WX2)], (), (1, 1), True),
    ("2+2W release", [(_WX, store("y", 2, "release")), (_WY, store("x", 2, "release"))], (), (1, 1), True),
    ("2+2W seq_cst fences", [(_WX, _SC, _WY2), (_WY, _SC, _WX2)], (), (1, 1), False),
    ("R acq_rel fences", [(_WX, _BOTH, _WY), (_WY2, _BOTH, _RX)], (0,), (1, 2), True),
    ("R seq_cst fences", [(_WX, _SC, _WY), (_WY2, _SC, _RX)], (0,), (1, 2), False),
    ("two additions", [(add("x", 1),), (add("x", 1),)], (0, 0), None, False),
    ("a store within an addition", [(add("x", 1),), (store("x", 5),)], (0,), (1, 0), False),
    ("two compare_exchanges", [(rmw("x", lambda value: None if value else 1),)] * 2, (0, 0), None, False),
]


@pytest.mark.parametrize(("name", "threads", "loads", "last", "allowed"), LITMUS, ids=[row[0] for row in LITMUS])
def test_the_outcome_is_allowed_or_not(
    name: str, threads: list[Ops], loads: tuple[int, ...], last: tuple[int, int] | None, allowed: bool
) -> None:
    """As in C++20, but without load buffering."""
    found = set()

    def at_end(state: State) -> None:
        loaded = tuple(value for side in state.sides for value in side.values if value is not None)
        found.add((loaded, tuple(history[-1].value for history in state.words) if last else None))

    assert not _machine(*threads).explore(at_end).problem
    assert ((loads, last) in found) == allowed, (name, found)


@pytest.mark.parametrize(
    ("stored", "loaded", "between", "races"),
    [
        ("release", "acquire", (), False),
        ("relaxed", "acquire", (), True),
        ("release", "relaxed", (), True),
        ("release", "relaxed", (_REL,), True),
        ("relaxed", "relaxed", (_SC,), False),  # a seq_cst fence is a release and an acquire fence as well
    ],
)
@pytest.mark.parametrize("accesses", [(write("d", 1), read("d")), (read("d"), write("d", 1))])
def test_plain_accesses_race_unless_one_happens_before_the_other(
    accesses: tuple[Op, Op], stored: str, loaded: str, between: Ops, races: bool
) -> None:
    """A write and a read race in either order."""
    receiver = (load("x", loaded, until=1), *between, accesses[1])
    problem = _machine((accesses[0], *between, store("x", 1, stored)), receiver).explore().problem
    assert problem.startswith("data race: thread 2") == races, problem


def test_the_order_of_seq_cst_fences_alone_does_not_order_plain_accesses() -> None:
    """Only a value that is read does, although the second fence's thread may no longer read older words."""
    assert "data race" in _machine((write("d", 1), _WX, _SC, _RY), (_WY, _SC, _RX, read("d"))).explore().problem


@pytest.mark.parametrize(
    ("waker", "waits"),
    [((add("x", 1), Op("wake", "x")), False), ((add("x", 1),), True), ((Op("wake", "x"), add("x", 1)), True)],
)
def test_a_wake_before_the_change_or_none_is_lost(waker: Ops, waits: bool) -> None:
    """The kernel compares and falls asleep in one step."""
    problem = _machine(waker, (Op("sleep", "x", 0),)).explore().problem
    assert problem == ("a side waits for ever" if waits else "")


@pytest.mark.parametrize(("until", "waits"), [(1, False), (2, True), ((1).__lt__, True)])
def test_a_wait_ends_only_with_its_value(until: Any, waits: bool) -> None:
    """A thread that waits for a value which no thread stores waits for ever."""
    problem = _machine((_WX,), (load("x", until=until),)).explore().problem
    assert problem == ("a side waits for ever" if waits else "")


@pytest.mark.parametrize("op", [store("x", 1, "seq_cst"), load("x", "seq_cst"), add("x", 1, "seq_cst")])
def test_a_seq_cst_access_is_an_error(op: Op) -> None:
    """Since it is not modelled."""
    with pytest.raises(ValueError, match="not modelled"):
        _machine((op,))


def test_a_half_that_the_code_lacks_is_an_error() -> None:
    """The text names label and function."""
    for op in load("x", "a.b", "Ring::Full"), load("x", "a.b"):
        with pytest.raises(LookupError, match=rf"no load with SYNC\(a\.b\) in {op.function}"):
            _machine((op,))
