"""Quantiles, wherever the benchmark tells one. The twin in C++ is quantile.h."""

import math
from collections.abc import Sequence


def quantile(values: Sequence[int], q: float) -> int:
    """Finds the smallest value that at least a fraction of the values does not exceed.

    Args:
      values: In any order.
      q: The fraction.

    Returns:
      One of them; 0 when there are none.
    """
    return sorted(values)[max(math.ceil(q * len(values)), 1) - 1] if values else 0
