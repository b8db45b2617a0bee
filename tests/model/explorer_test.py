"""The explorer: what it finds in a model of two sides that count up to 3."""

from collections.abc import Callable, Iterator

import pytest

from tests.model.explorer import Step, explore

Counts = tuple[int, int]  # of the sides 1 and 2
_MOST = 3


def _steps(counts: Counts) -> Iterator[Step[Counts]]:
    first, second = counts
    if first < _MOST:
        yield "side 1 counts", (first + 1, second)
    if second < _MOST:
        yield "side 2 counts", (first, second + 1)


def _ordered(counts: Counts) -> Counts:
    return min(counts), max(counts)


def _no_problem(counts: Counts) -> str:
    return ""


def _all_have_counted(counts: Counts) -> bool:
    return counts == (_MOST, _MOST)


def test_each_state_is_visited_once() -> None:
    """Also if several ways lead to it."""
    result = explore((0, 0), _steps, _no_problem, _all_have_counted)
    assert (result.states, result.problem) == (16, "")


def test_a_problem_comes_with_the_shortest_way_to_it() -> None:
    """From the initial state."""
    result = explore((0, 0), _steps, lambda counts: "3 apart" * (counts[0] - counts[1] == 3), _all_have_counted)
    assert result.problem == "3 apart"
    assert result.trace == [("start", (0, 0)), *(("side 1 counts", (count, 0)) for count in (1, 2, 3))]


@pytest.mark.parametrize("canonical", [lambda counts: counts, _ordered])
def test_a_state_from_which_no_rest_is_reached_is_a_problem(canonical: Callable[[Counts], Counts]) -> None:
    """Here all but those in which side 1 has counted less than twice."""
    result = explore((0, 0), _steps, _no_problem, lambda counts: max(counts) < 2, canonical=canonical)
    assert result.problem == "a side waits for ever"
    assert [max(state) for _, state in result.trace] == [0, 1, 2]


def test_no_side_may_rely_on_a_failure() -> None:
    """A rest that only a failure leads to is none."""
    result = explore((0, 0), _steps, _no_problem, _all_have_counted, lambda label: label == "side 2 counts")
    assert result.problem == "a side waits for ever"
    assert [label for label, _ in result.trace] == ["start"]


def test_states_that_differ_in_the_order_of_equal_sides_are_one() -> None:
    """One of them is visited."""
    found = explore((0, 0), _steps, _no_problem, _all_have_counted, canonical=_ordered)
    assert (found.states, found.problem) == (10, "")
    found = explore(
        (0, 0), _steps, lambda counts: "2 and 1" * (sorted(counts) == [1, 2]), _all_have_counted, canonical=_ordered
    )
    states = [state for _, state in found.trace]
    assert found.problem == "2 and 1" and len(states) == 4
    assert all(after in dict(_steps(before)).values() for before, after in zip(states, states[1:], strict=False))


def test_more_states_than_the_limit_are_an_error() -> None:
    """Which names the limit."""
    with pytest.raises(RuntimeError, match="at most 15 states"):
        explore((0, 0), _steps, _no_problem, _all_have_counted, limit=15)
