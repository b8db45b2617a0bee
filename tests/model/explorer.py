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
) -> Result[S]:
    """Visits every reachable state, nearest first.

    Args:
      initial: The model's initial state.
      steps: The steps that are possible in a state.
      problem_in: Returns the problem of a state; empty: no problem.
      at_rest: Whether no side waits in a state. From every state such a state must be reachable without a failure.
      is_failure: Whether a step, by its label, is a failure such as a crash, on which no side may rely.
      limit: The greatest number of states to visit.

    Returns:
      The first problem, or none.

    Raises:
      RuntimeError: The model has more states than `limit`.
    """
    gc.collect()
    gc.disable()  # it would visit all states again and again, and none is garbage
    try:
        return _explored(initial, steps, problem_in, at_rest, is_failure, limit)
    finally:
        gc.enable()


def _explored(
    initial: S,
    steps: Callable[[S], Iterable[Step[S]]],
    problem_in: Callable[[S], str],
    at_rest: Callable[[S], bool],
    is_failure: Callable[[str], bool],
    limit: int,
) -> Result[S]:
    came_from: dict[S, Step[S] | None] = {initial: None}
    queue = [initial]
    leads_here: dict[S, list[S]] = {}

    def way_to(state: S, problem: str) -> Result[S]:
        trace: list[Step[S]] = []
        step = came_from[state]
        while step is not None:
            trace.append((step[0], state))
            state = step[1]
            step = came_from[state]
        return Result(len(came_from), problem, [("start", state), *reversed(trace)])

    for state in queue:  # the loop appends to the queue
        if problem := problem_in(state):
            return way_to(state, problem)
        for label, after in steps(state):
            if after not in came_from:
                if len(came_from) == limit:
                    raise RuntimeError(f"expected at most {limit} states")
                came_from[after] = (label, state)
                queue.append(after)
            if not is_failure(label):
                leads_here.setdefault(after, []).append(state)

    # Backwards from the states at rest: a state that is not reached waits forever.
    can_rest = [state for state in queue if at_rest(state)]
    met = set(can_rest)
    for state in can_rest:
        for before in leads_here.get(state, ()):
            if before not in met:
                met.add(before)
                can_rest.append(before)
    for state in queue:
        if state not in met:
            return way_to(state, "a side waits for ever")
    return Result(len(came_from))
