"""Explores every reachable state of a small model, and shows the shortest way to a bad state.

It uses Python and breadth-first search instead of Spin: no package is necessary, the trace is the shortest, and a
mutation is an argument.
"""

import gc
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=Hashable)
Step = tuple[str, S]  # the label of the step, the state after it


def with_quick_replace(state_class: type[S]) -> type[S]:
    """Returns the NamedTuple class with a `_replace` that takes a quarter of the time: it is most of an exploration."""
    named_tuple: Any = state_class
    places = {name: place for place, name in enumerate(named_tuple._fields)}
    new: Any = tuple.__new__

    def replaced(state: Any, /, **changes: Any) -> Any:
        values = list(state)
        for name, value in changes.items():
            values[places[name]] = value
        return new(named_tuple, values)

    named_tuple._replace = replaced
    return state_class


@dataclass
class Result(Generic[S]):
    """The result of an exploration; `problem` is empty if there is none."""

    states: int
    problem: str = ""
    trace: list[Step[S]] = field(default_factory=list)

    def __str__(self) -> str:
        """Formats the problem with the shortest trace: one line for each step, with the changed values."""
        if not self.problem:
            return f"{self.states} states, no problem"
        lines = [f"{self.problem}; of {self.states} states, the shortest way there:"]
        for number, (label, state) in enumerate(self.trace):
            lines.append(f"{number:3} {label:44} {_difference(self.trace[max(number - 1, 0)][1], state)}")
        return "\n".join(lines)


def _difference(before: Any, after: Any) -> str:
    """Formats the differences between two values of one NamedTuple, also in nested tuples."""
    if hasattr(after, "_fields"):
        pairs = [(name, getattr(before, name), getattr(after, name)) for name in after._fields]
    else:
        pairs = [(f"[{index}]", old, new) for index, (old, new) in enumerate(zip(before, after, strict=True))]
    changed = []
    for name, old, new in pairs:
        if old != new:
            nested = isinstance(new, tuple) and any(hasattr(part, "_fields") for part in (new, *new))
            changed.append(f"{name}{{{_difference(old, new)}}}" if nested else f"{name}={new!r}")
    return " ".join(changed)


def explore(
    initial: S,
    steps: Callable[[S], Iterable[Step[S]]],
    problem_in: Callable[[S], str],
    at_rest: Callable[[S], bool],
    is_failure: Callable[[str], bool] = lambda label: False,
    limit: int = 2_000_000,
    canonical: Callable[[S], S] = lambda state: state,
) -> Result[S]:
    """Visits every reachable state, nearest first.

    Args:
      initial: The model's initial state.
      steps: The steps that are possible in a state.
      problem_in: Returns the problem of a state; empty: no problem.
      at_rest: Whether no side waits in a state. From every state such a state must be reachable without a failure.
      is_failure: Whether a step, by its label, is a failure such as a crash, on which no side may rely.
      limit: The greatest number of states to visit.
      canonical: Returns the same state for all that differ only in the order of equal sides, such as workers, so that
        one of them is visited. The order may matter neither to `steps` nor to the other functions.

    Returns:
      The first problem, or none.

    Raises:
      RuntimeError: The model has more states than `limit`.
    """
    gc.collect()
    gc.disable()  # it would visit all states again and again, and none is garbage
    try:
        return _explored(initial, steps, problem_in, at_rest, is_failure, limit, canonical)
    finally:
        gc.enable()


def _explored(
    initial: S,
    steps: Callable[[S], Iterable[Step[S]]],
    problem_in: Callable[[S], str],
    at_rest: Callable[[S], bool],
    is_failure: Callable[[str], bool],
    limit: int,
    canonical: Callable[[S], S],
) -> Result[S]:
    # A state's hash is computed once for each step that leads to it: all else goes by the state's number.
    numbers = {canonical(initial): 0}
    states = [canonical(initial)]
    came_from = [0]
    leads_here: list[list[int]] = [[]]

    def way_to(number: int, problem: str) -> Result[S]:
        way: list[int] = []
        while number != 0:
            way.append(number)
            number = came_from[number]
        state = initial
        trace = [("start", state)]
        for number in reversed(way):  # the states themselves, in their own order of equal sides
            label, state = next(step for step in steps(state) if canonical(step[1]) == states[number])
            trace.append((label, state))
        return Result(len(states), problem, trace)

    for number, state in enumerate(states):  # the loop appends to it
        if problem := problem_in(state):
            return way_to(number, problem)
        for label, after in steps(state):
            after = canonical(after)
            its = numbers.setdefault(after, len(states))
            if its == len(states):
                if its == limit:
                    raise RuntimeError(f"expected at most {limit} states")
                states.append(after)
                came_from.append(number)
                leads_here.append([])
            if not is_failure(label):
                leads_here[its].append(number)

    # Backwards from the states at rest: a state that is not reached waits forever.
    can_rest = [number for number, state in enumerate(states) if at_rest(state)]
    met = bytearray(len(states))
    for number in can_rest:
        met[number] = True
    for number in can_rest:
        for before in leads_here[number]:
            if not met[before]:
                met[before] = True
                can_rest.append(before)
    if (number := met.find(0)) >= 0:
        return way_to(number, "a side waits for ever")
    return Result(len(states))
