"""The page's SQL gives correct results on a table that a daemon has written, with and without a running daemon.

tools/test --with queries, which has pandas and DuckDB, runs the page's Python.
"""

from pathlib import Path

import pytest

from slow_lane.testing.queries.recipes import CHECKS, Recipe, read_recipes, run_sql
from slow_lane.testing.queries.two_runs import make_table
from tandem.testing.daemons import running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

_RECIPES = read_recipes(Path("slow_lane/docs/telemetry_queries.md"))
_SQL = [recipe for recipe in _RECIPES if recipe.language == "sql"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a data folder with two runs."""
    made = tmp_path_factory.mktemp("data")
    make_table(made)
    return made


@pytest.mark.parametrize("recipe", _SQL, ids=lambda recipe: recipe.heading)
def test_sql_finds_the_rows_of_its_heading(recipe: Recipe, folder: Path) -> None:
    """Runs with and without a running daemon."""
    with running_daemon(folder):
        CHECKS[recipe.heading](run_sql(recipe.code, folder), folder)
    CHECKS[recipe.heading](run_sql(recipe.code, folder), folder)


def test_every_block_is_checked() -> None:
    """Each check has its block."""
    assert [recipe.heading for recipe in _RECIPES] == list(CHECKS)
