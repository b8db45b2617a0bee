"""Results of some environments of a vector environment."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.arguments import env_indices, shown
from tandem.errors import InvalidArgument


def distinct_ids(env_ids: Sequence[int] | NDArray[Any], num_envs: int) -> list[int]:
    """Returns the indices that int[n] or a mask bool[num_envs] stands for.

    Raises:
      InvalidArgument: None, one twice, or one out of range.
    """
    ids = env_indices(env_ids, num_envs)
    if not ids or len(set(ids)) != len(ids):
        raise InvalidArgument(
            f"env_ids: expected one or more different environments, found {shown(ids)}; nothing was sent"
        )
    return ids


def chosen_infos(infos: dict[str, Any], env_ids: Sequence[int]) -> dict[str, Any]:
    """Returns the infos of some environments, in this order; without keys that none of them has."""
    ids = np.asarray(env_ids)
    chosen: dict[str, Any] = {}
    for name, values in infos.items():
        mask = infos.get(f"_{name}")
        if isinstance(mask, np.ndarray) and not mask[ids].any():
            continue
        if name[:1] == "_" and isinstance(infos.get(name[1:]), np.ndarray | dict) and not values[ids].any():
            continue
        chosen[name] = chosen_infos(values, ids.tolist()) if isinstance(values, dict) else values[ids]
    return chosen


def infos_of_each(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Turns arrays under names into one dictionary for each environment."""
    each: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for name, values in infos.items():
        if f"_{name}" not in infos:
            continue
        rows = infos_of_each(values, num_envs) if isinstance(values, dict) else values
        for index in np.flatnonzero(infos[f"_{name}"]):
            each[index][name] = rows[index]
    return each
