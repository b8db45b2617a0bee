"""As quantile_test.cc has it."""

from tests.benchmark.quantile import quantile
from tools.testing import pytest_main


def test_it_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    """And one of them, however few they are."""
    values = range(200, 0, -1)
    assert [quantile(values, q) for q in (0.5, 0.99, 1)] == [100, 198, 200]
    assert [quantile([3, 1, 2], q) for q in (0.5, 0.99)] == [2, 3]
    assert [quantile([7], q) for q in (0, 0.99)] == [7, 7]
    assert quantile([], 0.5) == 0


if __name__ == "__main__":
    pytest_main.run(__file__)
