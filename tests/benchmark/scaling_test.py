"""A tiny run over all sizes. No time is judged."""

import glob
import json
import uuid
from pathlib import Path

import pytest

from tests.benchmark import scaling
from tests.benchmark.measurement import Group, Size
from tests.benchmark.suite import Plan
from tools.testing import pytest_main


def test_every_row_is_measured_at_every_size(tmp_path: Path) -> None:
    """Up to 16,384 environments and observations of 1000; tables and picture are made, and nothing is left."""
    rows = scaling.SUITE.rows
    plan = Plan(frozenset(rows), rounds=1, seconds=0.01, quick=True, prefix=f"tandem-benchmark-{uuid.uuid4().hex}")
    found = scaling.SUITE.measure(plan)
    figures = json.loads(json.dumps(found.figures))
    assert [case["size"]["envs"] for case in figures["by_envs"]] == [1, 64, 4096, 16384]
    assert [case["size"]["obs"] for case in figures["by_obs"]] == [4, 1000]
    for case in (*figures["by_envs"], *figures["by_obs"]):
        assert list(case["groups_ns"]) == list(rows)
        assert all(groups[0]["step_p50"] > 0 for groups in case["groups_ns"].values())
    assert len(found.tables) == 2
    assert all(f" {label} " in table for table in found.tables for label in rows.values())
    assert "| 16,384 " in found.tables[0]
    assert found.draw is not None
    found.draw(str(tmp_path / "scaling.png"))
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
    assert not glob.glob(f"/dev/shm/*{plan.prefix}*")


def test_costs_are_by_environment_and_ratios_within_a_round() -> None:
    """A round in which everything took twice as long changes no ratio."""

    def group(nanos: float) -> Group:
        return Group(10, nanos, nanos, nanos, nanos, nanos, nanos)

    groups = {"spin": [group(1000), group(2000)], "host_spin": [group(1500), group(3000)]}
    case = scaling.Case(Size(100, 32, 8, 10), groups)
    assert case.cost("spin").median == pytest.approx(15)
    assert (case.ratio("host_spin").min, case.ratio("host_spin").max) == (1.5, 1.5)


if __name__ == "__main__":
    pytest_main.run(__file__)
