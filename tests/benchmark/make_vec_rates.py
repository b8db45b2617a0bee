"""What make_vec adds to the client below it, and how both stand beside other vector environments."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmark.mujoco_rates import Rates, measure_cell
from tests.benchmark.mujoco_rows import CART_POLE, TASKS, Cell, Rows, say
from tests.benchmark.suite import Found, Plan, Suite
from tests.benchmark.tables import Spread, figure, markdown

BASELINE = "tandem"
ROWS = {
    BASELINE: "Tandem, SharedMemoryClient",
    "tandem_make_vec": "Tandem, make_vec",
    "envpool": "EnvPool",
    "gymnasium_sync": "Gymnasium SyncVectorEnv",
    "gymnasium_async": "Gymnasium AsyncVectorEnv",
}
_HALF_CHEETAH, _ANT, _ = TASKS
CELLS = (Cell(CART_POLE, 1, 2), Cell(CART_POLE, 64, 2), Cell(_HALF_CHEETAH, 64, 2), Cell(_ANT, 64, 2))


def measure(plan: Plan) -> Found:
    """Measures every cell, one after the other; within each the rows take turns.

    Args:
      plan: What of it to measure. A turn of `plan.seconds` is one of 20 of a round; making 64 processes takes seconds.

    Returns:
      What was found.
    """
    started = time.monotonic()
    keys = [key for key in ROWS if key in plan.rows]
    found = []
    with tempfile.TemporaryDirectory(prefix=f"{plan.prefix}-") as folder, Rows(plan.prefix, Path(folder)) as rows:
        for number, cell in enumerate(CELLS):
            found.append(measure_cell(cell, rows, keys, plan.rounds, plan.seconds))
            rate, secs = figure(found[-1].rate(BASELINE).median), time.monotonic() - started
            say(f"make_vec: {number + 1} of {len(CELLS)}, {cell}: client {rate}/s; {secs:.0f} s so far")
    return Found(
        [_table_of_rates(keys, found), _table_of_ratios(keys, found)], {"cells": [rates.figures() for rates in found]}
    )


def _table_of_rates(keys: Sequence[str], found: Sequence[Rates]) -> str:
    lines = [
        [
            ROWS[key],
            *(f"{figure(one.rate(key).median / 1e3)} K, {figure(_micros(one, key).median)} us" for one in found),
        ]
        for key in keys
    ]
    title = "**make_vec**: environment steps/s and microseconds of a step of all environments, medians"
    return markdown(title, ["", *map(_head, found)], lines)


def _table_of_ratios(keys: Sequence[str], found: Sequence[Rates]) -> str:
    ours = "tandem_make_vec"
    lines = [
        [f"make_vec / {ROWS[key]}", *(str(one.ratio(ours, key)) for one in found)]
        for key in keys
        if key != ours and ours in keys
    ]
    title = "**make_vec** over the others, ratios of steps/s: median (least .. greatest), by round"
    return markdown(title, ["", *map(_head, found)], lines)


def _micros(rates: Rates, key: str) -> Spread:
    return Spread.of([1e6 * rates.cell.envs / turn.rate for turn in rates.turns[key]])


def _head(rates: Rates) -> str:
    return f"{rates.cell.task.name}, {rates.cell.envs}"


SUITE = Suite(
    name="make_vec",
    about="make_vec's step beside the client's, EnvPool's and Gymnasium's vector environments",
    rows=ROWS,
    baseline=frozenset({BASELINE}),
    measure=measure,
    interpreters={key: "peers" for key in ROWS if not key.startswith("tandem")},
)
