"""Runs the blocks of slow_lane/docs/telemetry_queries.md on the table that two_runs.py makes, and checks their results.

sqlite3 runs the SQL. The interpreter of this program runs the Python, and needs the blocks' packages. As a program:

    recipes.py PAGE FOLDER     # runs the Python blocks; FOLDER has tandem.db
"""

import os
import re
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The run_ids that two_runs.py uses.
RUNS = ("first", "second")


@dataclass(frozen=True)
class Recipe:
    """A block of the page.

    Attributes:
      heading: The section's heading.
      language: "sql" or "python".
      code: The block's code.
    """

    heading: str
    language: str
    code: str


def read_recipes(page: Path) -> list[Recipe]:
    """Reads the blocks of a page.

    Args:
      page: The Markdown file.

    Returns:
      The blocks in SQL and in Python, in order.
    """
    found = re.findall(
        r"^### ([^\n]+)$|^```(sql|python)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    recipes, heading = [], ""
    for title, language, code in found:
        if title:
            heading = title
        else:
            recipes.append(Recipe(heading, language, code))
    return recipes


def run_sql(code: str, folder: Path) -> list[list[tuple[Any, ...]]]:
    """Runs statements on the table.

    Args:
      code: The statements, each with a semicolon at its end.
      folder: The folder with tandem.db.

    Returns:
      The rows of each statement.
    """
    table = sqlite3.connect(f"file:{folder / 'tandem.db'}?mode=ro", uri=True)
    try:
        return [table.execute(statement).fetchall() for statement in code.split(";") if statement.strip()]
    finally:
        table.close()


def run_python(code: str, folder: Path) -> dict[str, Any]:
    """Runs a block in a folder.

    Args:
      code: The block's code.
      folder: The folder with tandem.db.

    Returns:
      The block's variables.
    """
    before = Path.cwd()
    os.chdir(folder)
    try:
        variables: dict[str, Any] = {}
        exec(compile(code, "telemetry_queries.md", "exec"), variables)
        return variables
    finally:
        os.chdir(before)


def _totals(folder: Path) -> dict[str, tuple[int, int, float]]:
    """Returns run_id -> episodes, steps, greatest return, by separate queries."""
    totals = {}
    for run_id, returns in _returns(folder).items():
        ((steps,),) = run_sql(f"SELECT count(*) FROM steps WHERE run_id = '{run_id}';", folder)[0]
        totals[run_id] = len(returns), steps, max(returns)
    return totals


def _returns(folder: Path) -> dict[str, list[float]]:
    returns: dict[str, list[float]] = {run_id: [] for run_id in RUNS}
    for run_id, total_reward in run_sql("SELECT run_id, total_reward FROM episodes ORDER BY seq_id;", folder)[0]:
        returns[run_id].append(total_reward)
    return returns


def _check_runs(found: list[list[tuple[Any, ...]]], folder: Path) -> None:
    (rows,) = found
    totals = _totals(folder)
    assert [row[0] for row in rows] == list(RUNS)
    for run_id, name, status, episodes, steps, best in rows:
        assert (name, status) == ("test", 7) and episodes > 0
        assert (episodes, best) == (totals[run_id][0], totals[run_id][2]) and 0 < steps <= totals[run_id][1]


def _check_best(found: list[list[tuple[Any, ...]]], folder: Path) -> None:
    (rows,) = found
    expected = {run_id: sum(all[-100:]) / len(all[-100:]) for run_id, all in _returns(folder).items()}
    assert dict(rows) == expected and rows[0][1] == max(expected.values())


def _check_angles(found: list[list[tuple[Any, ...]]], folder: Path) -> None:
    (rows,) = found
    assert [row[0] for row in rows] == list(range(len(rows))) and len(rows) > 5
    assert abs(rows[0][1]) < 0.1 and abs(rows[-1][1]) > 0.2 and all(row[2] == 1.0 for row in rows)


def _check_learning(found: list[list[tuple[Any, ...]]], folder: Path) -> None:
    (rows,) = found
    assert [row[:2] for row in rows] == [(run_id, number) for run_id in RUNS for number in range(4)]
    assert all(row[2] >= 8 for row in rows)


def _check_curve(found: list[list[tuple[Any, ...]]], folder: Path) -> None:
    (rows,) = found
    assert [row[:2] for row in rows] == [(run_id, number) for run_id in RUNS for number in range(4)]
    learning = "SELECT payload_json ->> 'mean_return' FROM lifecycle WHERE event = 'iteration' ORDER BY run_id, seq_id;"
    assert [row[2:] for row in rows] == run_sql(learning, folder)[0]


def _check_attempts(found: list[list[tuple[Any, ...]]], folder: Path) -> None:
    (rows,) = found
    assert len(rows) == 2 * 4 * 2 and {row[2] for row in rows} == {"return/mean", "return/deviation"}


def _check_complete(found: list[list[tuple[Any, ...]]], folder: Path) -> None:
    rows, malformed = found
    assert [(row[0], row[1]) for row in rows] == [(run_id, total[1]) for run_id, total in _totals(folder).items()]
    assert all(row[1] == row[2] for row in rows) and malformed == []


def _check_smoothed(found: dict[str, Any], folder: Path) -> None:
    episodes, totals = found["episodes"], _totals(folder)
    assert len(episodes) == sum(total[0] for total in totals.values())
    assert found["best"].to_dict() == {run_id: total[2] for run_id, total in totals.items()}
    assert str(episodes["at"].dtype).endswith("UTC]") and episodes["at"].is_monotonic_increasing
    assert episodes["smooth"].between(8, 500).all()


def _check_array(found: dict[str, Any], folder: Path) -> None:
    observations = found["observations"]
    assert observations.shape == (_totals(folder)[RUNS[0]][1], 4) and observations.dtype == float


def _check_duckdb(found: dict[str, Any], folder: Path) -> None:
    totals = _totals(folder)
    assert [(row[0], row[2]) for row in found["quantiles"]] == [(run_id, total[0]) for run_id, total in totals.items()]
    assert all(8 <= low <= middle <= high <= 500 for _, (low, middle, high), _ in found["quantiles"])
    assert sum(row[2] for row in found["lengths"]) == sum(total[1] for total in totals.values())


# Heading -> the check of the block's result.
CHECKS: dict[str, Callable[[Any, Path], None]] = {
    "Runs and their progress": _check_runs,
    "Runs by the mean of the newest hundred episodes": _check_best,
    "One observation value during an episode": _check_angles,
    "Learning curve from lifecycle events": _check_learning,
    "Curve of a scalar": _check_curve,
    "Scalars of each run's last attempt": _check_attempts,
    "Missing rows and malformed lines": _check_complete,
    "Returns of all runs, smoothed": _check_smoothed,
    "Observations as an array": _check_array,
    "Attach, ask, export": _check_duckdb,
}


def _load_extension() -> None:
    """Installs DuckDB's signed extension from the Python package that contains it, without a network."""
    import duckdb
    import duckdb_extension_sqlite_scanner

    (file,) = Path(duckdb_extension_sqlite_scanner.__file__).parent.glob("extensions/*/*.duckdb_extension")
    duckdb.connect().execute(f"INSTALL '{file}'")


def main() -> None:
    """Runs the Python blocks."""
    page, folder = map(Path, sys.argv[1:])
    _load_extension()
    for recipe in read_recipes(page):
        if recipe.language == "python":
            CHECKS[recipe.heading](run_python(recipe.code, folder), folder)
            print(f"ok {recipe.heading}")


if __name__ == "__main__":
    main()
