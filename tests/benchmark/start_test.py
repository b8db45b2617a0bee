"""Starts of what needs nothing of the peers. No time is judged."""

import glob
import json
import uuid

from tests.benchmark import start
from tests.benchmark.suite import Plan
from tools.testing import pytest_main


def plan_of(*rows: str) -> Plan:
    """Makes a plan of one round."""
    return Plan(frozenset(rows), rounds=1, seconds=0.01, quick=True, prefix=f"tandem-benchmark-{uuid.uuid4().hex}")


def test_engines_are_started_attached_to_and_weighed() -> None:
    """Each number of environments has its figures; nothing is left."""
    plan = plan_of("attach", "launch", "make_vec", "memory")
    found = start.SUITE.measure(plan)
    figures = json.loads(json.dumps(found.figures))
    labels = ["1 CartPole-v1", "64 CartPole-v1", "4,096 CartPole-v1", "64 HalfCheetah-v5"]
    assert list(figures["attach_secs"]) == labels
    assert all(min(secs) > 0 for secs in figures["attach_secs"].values())
    assert list(figures["starts"]) == [*(f"Tandem: {label}" for label in labels), f"Tandem's make_vec: {labels[-1]}"]
    for (one,) in figures["starts"].values():
        assert 0 < one["made"] < one["first_obs"]
    assert [one["envs"] for one in figures["memory_kib"]] == [1, 64, 4096]
    for one in figures["memory_kib"]:
        assert one["engine"] > 1000
        assert 0 < one["client_before"] < one["client"]
        assert one["region"] * 1024 >= 4096 + one["envs"] * 4 * 4
    assert len(found.tables) == 3
    assert not glob.glob(f"/dev/shm/*{plan.prefix}*")


def test_a_row_can_be_measured_alone() -> None:
    """The others' figures and tables are not there then."""
    found = start.SUITE.measure(plan_of("memory"))
    assert len(found.tables) == 1
    assert found.figures["starts"] == {} and found.figures["attach_secs"] == {}


if __name__ == "__main__":
    pytest_main.run(__file__)
