"""Where the time of the quickstart's training goes, over Tandem and over what one would take instead."""

import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from examples.train_ars import EPISODE_STEPS
from tests.benchmark.interpreters import python_of, variables_of_interpreter
from tests.benchmark.json_program import answer_of
from tests.benchmark.suite import Found, Plan, Suite, in_turn
from tests.benchmark.tables import Spread, markdown

BASELINE = "tandem"
ROWS = {
    BASELINE: "Tandem, SharedMemoryClient",
    "make_vec": "Tandem, make_vec",
    "envpool": "EnvPool",
    "sync": "Gymnasium SyncVectorEnv",
    "async": "Gymnasium AsyncVectorEnv",
}
_INTERPRETERS = {"envpool": "peers"}
_ENVS, _QUICK_ENVS = 64, 4
_ROUNDS = 3  # an iteration takes seconds
_TIMEOUT_SECS = 600.0  # of a row


@dataclass(frozen=True)
class Training:
    """Where the seconds of an iteration went.

    Attributes:
      wall_secs: All.
      env_secs: In calls of the environments: all but the policy's.
      physics_secs: Of these, in the engine; None: not known.
    """

    wall_secs: float
    env_secs: float
    physics_secs: float | None

    @staticmethod
    def of(found: dict[str, Any]) -> "Training":
        """Takes it from what training_client printed, of one iteration."""
        return Training(found["wall_secs"], found["env_secs"], found["physics_secs"])


def measure_row(row: str, num_envs: int, region: str) -> Training:
    """Trains for one iteration after another that is not measured, in a process of its own.

    Args:
      row: Of `ROWS`.
      num_envs: An even number.
      region: A name for Tandem's.

    Returns:
      Where the time went.

    Raises:
      RowUnavailable: The row's interpreter was not made.
      subprocess.SubprocessError: It failed; its own message is on stderr.
    """
    if row in _INTERPRETERS:
        python, variables = python_of(_INTERPRETERS[row]), variables_of_interpreter()
    else:
        python, variables = sys.executable, {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [python, "-P", "-m", "tests.benchmark.training_client", f"--row={row}", f"--envs={num_envs}"]
    command.append(f"--region={region}")
    # Else each environment's model warns.
    return Training.of(answer_of(command, timeout_secs=_TIMEOUT_SECS, variables=variables, shows_warnings=False))


def _measure(plan: Plan) -> Found:
    rows = [row for row in ROWS if row in plan.rows]
    rounds = min(plan.rounds, 1 if plan.quick else _ROUNDS)
    num_envs = _QUICK_ENVS if plan.quick else _ENVS
    found: dict[str, list[Training]] = {row: [] for row in rows}
    started = time.monotonic()
    for number in range(rounds):
        for row in in_turn(rows, number):
            found[row].append(measure_row(row, num_envs, f"{plan.prefix}-{row}"))
        print(f"training: round {number + 1} of {rounds}; {time.monotonic() - started:.0f} s so far", file=sys.stderr)
    lines = []
    for row, those in found.items():
        times = [one.wall_secs / base.wall_secs for one, base in zip(those, found[BASELINE], strict=True)]
        physics = [one.physics_secs for one in those if one.physics_secs is not None]
        parts = [
            [one.wall_secs for one in those],
            times,
            [one.wall_secs - one.env_secs for one in those],
            [one.env_secs for one in those],
            physics,
            [one.env_secs - (one.physics_secs or 0.0) for one in those] if physics else [],
        ]
        lines.append([ROWS[row], *(str(Spread.of(part)) if part else "" for part in parts)])
    title = (
        f"**An iteration of the quickstart's training**, {num_envs} HalfCheetahs, {EPISODE_STEPS} steps of each: "
        f"seconds, median (least .. greatest) of {rounds} rounds"
    )
    head = ("row", "all", "times Tandem's", "policy", "environments", "of that physics", "transport")
    return Found([markdown(title, head, lines)], {row: [asdict(one) for one in those] for row, those in found.items()})


SUITE = Suite(
    name="training",
    about="where the time of the quickstart's training goes, against the same on EnvPool and Gymnasium's vectors",
    rows=ROWS,
    baseline=frozenset({BASELINE}),
    measure=_measure,
    interpreters=_INTERPRETERS,
)
