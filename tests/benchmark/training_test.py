"""The quickstart's training over Tandem and over Gymnasium's vectors, for an iteration. No time is judged."""

import glob
import uuid

import pytest

from tests.benchmark import training
from tools.testing import pytest_main


@pytest.mark.parametrize("row", ["tandem", "make_vec", "sync", "async"])
def test_the_parts_of_an_iteration_are_told(row: str) -> None:
    """They add up; only Tandem's engine tells its own."""
    region = f"tandem-training-{uuid.uuid4().hex}"
    found = training.measure_row(row, 2, region)
    assert 0 < found.env_secs < found.wall_secs
    if row in ("tandem", "make_vec"):
        assert found.physics_secs is not None and 0 < found.physics_secs <= found.env_secs
    else:
        assert found.physics_secs is None
    assert not glob.glob(f"/dev/shm/*{region}*")


if __name__ == "__main__":
    pytest_main.run(__file__)
