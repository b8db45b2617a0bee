"""The slow lane: what goes from workers' output into the table and from there to watchers, and how fast."""

from collections.abc import Callable
from typing import Any

from tests.benchmark import slow_lane_calls as calls
from tests.benchmark import slow_lane_events as events
from tests.benchmark import slow_lane_large_event as large_event
from tests.benchmark import slow_lane_many_workers as many_workers
from tests.benchmark import slow_lane_resume as resume
from tests.benchmark.suite import Found, Plan, Suite

_Measure = Callable[[Plan, int], tuple[str, dict[str, Any]] | None]

_ROUNDS = 3  # a turn takes seconds
_PARTS: dict[str, _Measure] = {
    "events": events.measure,
    "many_workers": many_workers.measure,
    "large_event": large_event.measure,
    "calls": calls.measure,
    "resume": resume.measure,
}


def _measure(plan: Plan) -> Found:
    rounds = min(plan.rounds, 1 if plan.quick else _ROUNDS)
    tables, figures = [], {}
    for name, measure in _PARTS.items():
        if found := measure(plan, rounds):
            tables.append(found[0])
            figures[name] = found[1]
    return Found(tables, figures)


SUITE = Suite(
    name="slow_lane",
    about="steps into durable rows, calls and watchers of the daemon, against asyncio + sqlite3 and MLflow's store",
    rows={**events.ROWS, **many_workers.ROWS, **large_event.ROWS, **calls.ROWS, **resume.ROWS},
    baseline=frozenset({events.BASELINE}),
    measure=_measure,
    interpreters=events.INTERPRETERS,
)
