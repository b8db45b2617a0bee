"""`RowArrays`: the arrays of results and reset flags that EnvRows (client_py/bindings/env_rows.h) reads and writes.

    arrays = RowArrays.zeros(num_envs)  # or views of a region
    mine = arrays.rows(16, 8)  # of environments 16 to 23

A worker process has the rows of its environments; the trainer process has all.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class RowArrays(NamedTuple):
    """One value for each environment. The worker writes the results; the trainer writes the reset flags and seeds."""

    rewards: NDArray[np.float32]  # `reward` rounded
    reward: NDArray[np.float64]  # 0 after a reset
    terminateds: NDArray[np.uint8]  # 1: a terminal state was reached
    truncateds: NDArray[np.uint8]  # 1: the episode was cut short
    dones: NDArray[np.uint8]  # 1: the episode is over
    resets: NDArray[np.uint8]  # 0, 4 (skip), or a reset; with bit 2 `reset_seeds` has its seed
    reset_seeds: NDArray[np.uint64]
    status: NDArray[np.uint8]  # an EnvStatus of schema/layout/field.h: 0 ok, 1 raised
    episode_return: NDArray[np.float64]  # the sum of an episode's rewards, written in the step that ends it
    episode_length: NDArray[np.int64]  # the number of its steps

    @classmethod
    def zeros(cls, rows: int) -> "RowArrays":
        """Returns new arrays.

        >>> RowArrays.zeros(2).reward
        array([0., 0.])
        """
        dtypes: list[Any] = [np.float32, np.float64, *[np.uint8] * 4, np.uint64, np.uint8, np.float64, np.int64]
        return cls(*(np.zeros(rows, dtype) for dtype in dtypes))

    def rows(self, first: int, count: int) -> "RowArrays":
        """Returns views of some rows."""
        views: list[Any] = [array[first : first + count] for array in self]
        return RowArrays(*views)
