"""MuJoCo environment steps a second: Tandem, the bare loop, EnvPool and Gymnasium, all told the same actions."""

import contextlib
import dataclasses
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmark import pictures
from tests.benchmark.mujoco_rows import TASKS, Cell, Rows, Run, Task, Turn, measures, say
from tests.benchmark.suite import Found, Plan, Suite, in_turn
from tests.benchmark.tables import Spread, figure, markdown

BASELINE = "loop"
ROWS = {
    BASELINE: "bare mj_step loop, C++",
    "tandem": "Tandem, SharedMemoryClient",
    "tandem_make_vec": "Tandem, make_vec",
    "tandem_spin": "Tandem, its client spins",
    "tandem_halves": "Tandem, two halves in turn",
    "envpool": "EnvPool",
    "envpool_async": "EnvPool, async",
    "gymnasium_sync": "Gymnasium SyncVectorEnv",
    "gymnasium_async": "Gymnasium AsyncVectorEnv",
}
ENVS = (1, 8, 64, 512)
THREADS = (1, 2)
JUDGED = (64, 2)  # environments and threads that the goals are about: these get all rounds, others a third, or three
_WARM_UP_BATCHES = 40.0  # by when a Humanoid has fallen twice
_WARM_UP_TURNS = 2.0  # but no longer than these would take


@dataclass(frozen=True)
class Rates:
    """What was found in a cell.

    Attributes:
      cell: It.
      turns: Row -> its turns, one of each round. Rows that make no sense here are missing.
    """

    cell: Cell
    turns: Mapping[str, Sequence[Turn]]

    def rate(self, row: str) -> Spread:
        """Returns steps a second."""
        return Spread.of([turn.rate for turn in self.turns[row]])

    def figures(self) -> dict[str, Any]:
        """Returns all of it, as JSON takes it."""
        return {
            "task": self.cell.task.name,
            "envs": self.cell.envs,
            "threads": self.cell.threads,
            "rows": {key: [dataclasses.asdict(turn) for turn in turns] for key, turns in self.turns.items()},
        }

    def ratio(self, row: str, to: str) -> Spread:
        """Returns how many times the rate of another row, round by round."""
        pairs = zip(self.turns[row], self.turns[to], strict=True)
        return Spread.of([turn.rate / other.rate for turn, other in pairs])


def cells(quick: bool) -> list[Cell]:
    """Lists what there is to measure."""
    envs = (JUDGED[0],) if quick else ENVS
    return [Cell(task, number, threads) for task in TASKS for threads in THREADS for number in envs]


def measure_cell(cell: Cell, rows: Rows, keys: Sequence[str], rounds: int, seconds: float) -> Rates:
    """Measures rows of a cell in turn.

    Args:
      cell: The cell.
      rows: Opens them.
      keys: Which.
      rounds: How many turns each has, once it is warm.
      seconds: Of a turn.

    Returns:
      What was found.
    """
    turns: dict[str, list[Turn]] = {key: [] for key in keys}
    with contextlib.ExitStack() as stack:
        opened = {key: stack.enter_context(rows.opened(key, cell)) for key in keys}
        for run in opened.values():
            _warm_up(run, cell, seconds)
        for number in range(rounds):
            for key in in_turn(keys, number):
                turns[key].append(opened[key](seconds))
    return Rates(cell, turns)


def _warm_up(run: Run, cell: Cell, seconds: float) -> None:
    end = time.monotonic() + _WARM_UP_TURNS * seconds
    batches = 0.0
    while batches < _WARM_UP_BATCHES and time.monotonic() < end:
        batches += run(seconds / 10).steps / cell.envs


def measure(plan: Plan) -> Found:
    """Measures every cell, one after the other; within each the rows take turns.

    A turn of `plan.seconds` is one of 138 (with `plan.quick` 36) of a round; making and warming up the
    environments take as long as two or three rounds.

    Args:
      plan: What of it to measure.

    Returns:
      What was found.
    """
    started = time.monotonic()
    found = []
    chosen = cells(plan.quick)
    with (
        tempfile.TemporaryDirectory(prefix=f"{plan.prefix}-") as folder,
        Rows(plan.prefix, Path(folder)) as rows,
    ):
        for number, cell in enumerate(chosen):
            judged = (cell.envs, cell.threads) == JUDGED
            rounds = plan.rounds if judged else min(plan.rounds, max(3, math.ceil(plan.rounds / 3)))
            keys = [key for key in ROWS if key in plan.rows and measures(key, cell)]
            found.append(measure_cell(cell, rows, keys, rounds, plan.seconds))
            rate = figure(found[-1].rate(BASELINE).median)
            secs = time.monotonic() - started
            say(f"mujoco: {number + 1} of {len(chosen)}, {cell}: bare loop {rate}/s; {secs:.0f} s so far")
    tables = [_table(task, threads, found) for task in TASKS for threads in THREADS]
    tables = [*_table_of_goals(found), *tables, *_table_of_transport(found)]
    return Found(tables, {"cells": [rates.figures() for rates in found]}, draw=lambda path: _draw(path, found))


def _table_of_goals(found: Sequence[Rates]) -> list[str]:
    """Has no table where nothing is compared."""
    judged = [rates for rates in found if (rates.cell.envs, rates.cell.threads) == JUDGED]
    lines = []
    for label, row, to in (
        ("Tandem / bare loop", "tandem", BASELINE),
        ("Tandem / EnvPool", "tandem", "envpool"),
        ("make_vec / EnvPool", "tandem_make_vec", "envpool"),
        ("Tandem in halves / EnvPool, async", "tandem_halves", "envpool_async"),
    ):
        ratios = [str(one.ratio(row, to)) if {row, to} <= set(one.turns) else "" for one in judged]
        if any(ratios):
            lines.append([label, *ratios])
    title = (
        f"**Ratios of steps/s**, {JUDGED[0]} environments, {JUDGED[1]} threads: median (least .. greatest), by round"
    )
    return [markdown(title, ["", *(rates.cell.task.name for rates in judged)], lines)] if lines else []


def _table(task: Task, threads: int, found: Sequence[Rates]) -> str:
    columns = [rates for rates in found if rates.cell.task == task and rates.cell.threads == threads]
    lines = []
    for key, label in ROWS.items():
        texts = [_rate_text(rates, key) if key in rates.turns else "" for rates in columns]
        if any(texts):
            lines.append([label, *texts])
    title = (
        f"**{task.name}, {threads} thread{'s' if threads > 1 else ''}**: environment steps/s, median; times those of "
        "the bare loop in the same round, median (least .. greatest)"
    )
    return markdown(title, ["environments", *(str(rates.cell.envs) for rates in columns)], lines)


def _rate_text(rates: Rates, key: str) -> str:
    rate = f"{figure(rates.rate(key).median / 1e3)} K"
    return rate if key == BASELINE else f"{rate}, {rates.ratio(key, BASELINE)}"


def _table_of_transport(found: Sequence[Rates]) -> list[str]:
    """Has no table where Tandem was not measured."""
    numbers = sorted({rates.cell.envs for rates in found})
    lines = []
    for key in ("tandem", "tandem_make_vec", "tandem_spin"):
        for task in TASKS:
            for threads in THREADS:
                shares = {
                    rates.cell.envs: Spread.of([100 * (turn.transport or 0.0) for turn in rates.turns[key]])
                    for rates in found
                    if key in rates.turns and (rates.cell.task, rates.cell.threads) == (task, threads)
                }
                if shares:
                    texts = [str(shares[number]) if number in shares else "" for number in numbers]
                    lines.append([f"{ROWS[key]}: {task.name}, {threads} threads", *texts])
    title = "**Transport**: percent of the round trips in which the engine did not step, median (least .. greatest)"
    return [markdown(title, ["environments", *map(str, numbers)], lines)] if lines else []


def _draw(path: str, found: Sequence[Rates]) -> None:
    judged = [rates for rates in found if (rates.cell.envs, rates.cell.threads) == JUDGED]
    keys = [key for key in ROWS if any(key in rates.turns for rates in judged)]
    title = f"MuJoCo, {JUDGED[0]} environments, {JUDGED[1]} threads"
    width, height = 4.0 * len(judged) + 2.0, 0.4 * len(keys) + 1.7
    with pictures.saved(path, title, 1, len(judged), width, height, sharey=True) as ((*panels,),):
        places = range(len(keys))
        for panel, rates in zip(panels, judged, strict=True):
            ratios = [rates.ratio(key, BASELINE) for key in keys]
            pictures.draw_bars(panel, places, ratios, [key.startswith("tandem") for key in keys], 1)
            panel.set_xlim(0, max(one.max for one in ratios) * 1.25)
            for place, key, ratio in zip(places, keys, ratios, strict=True):
                rate = figure(rates.rate(key).median / 1e3)
                panel.text(ratio.max + 0.02, place, f"{rate} K/s", va="center", fontsize=8)
            panel.set_title(rates.cell.task.name, fontsize=10)
            panel.set_xlabel("times the bare loop's steps/s", fontsize=9)
        panels[0].set_yticks(places, [ROWS[key] for key in keys], fontsize=9)
        panels[0].invert_yaxis()
        pictures.explain_bars(panels[0])


SUITE = Suite(
    name="mujoco",
    about="MuJoCo environment steps a second, against a bare mj_step loop, EnvPool and Gymnasium",
    rows=ROWS,
    baseline=frozenset({BASELINE}),
    measure=measure,
    interpreters={key: "peers" for key in ROWS if not key.startswith(("loop", "tandem"))},
)
