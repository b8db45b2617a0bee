"""Infos of a vector environment: `values` and a mask `_values` under each name; parts of them, by rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from tandem.environments.vector_arguments import Mask
from tandem.spaces.trees import mapped

Infos = dict[str, Any]


def masked(infos: Infos) -> Iterator[tuple[str, Any, Mask]]:
    """Returns name, values and mask of each info; values are an array, or infos in their turn."""
    for name, values in infos.items():
        mask = infos.get(f"_{name}")
        if mask is not None:
            yield name, values, mask


def infos_of_each(infos: Infos, num_envs: int) -> list[Infos]:
    """Returns the infos of each row, as its environment gave them."""
    each: list[Infos] = [{} for _ in range(num_envs)]
    for name, values, mask in masked(infos):
        rows = infos_of_each(values, num_envs) if isinstance(values, dict) else values
        for index in np.flatnonzero(mask):
            each[index][name] = rows[index]
    return each


def chosen_infos(infos: Infos, env_ids: Sequence[int]) -> Infos:
    """Returns the infos of some rows, in this order; without names that none of them has."""
    ids = np.asarray(env_ids)
    chosen: Infos = {}
    for name, values, mask in masked(infos):
        if (its := mask[ids]).any():
            chosen[name] = chosen_infos(values, env_ids) if isinstance(values, dict) else values[ids]
            chosen[f"_{name}"] = its
    return chosen


def split_infos(infos: Infos, rows: Mask) -> tuple[Infos, Infos]:
    """Returns the infos of the rows outside a mask bool[num_envs], and those of the rows in it; without empty ones."""
    others: Infos = {}
    chosen: Infos = {}
    for name, values, mask in masked(infos):
        parts = split_infos(values, rows) if isinstance(values, dict) else (values, values)
        for to, part, present in ((others, parts[0], mask & ~rows), (chosen, parts[1], mask & rows)):
            if present.any():
                to[name], to[f"_{name}"] = part if isinstance(part, dict) else _only(part, present), present
    return others, chosen


def _only(values: NDArray[Any], mask: Mask) -> NDArray[Any]:
    """Returns a copy of which the rows outside the mask are 0, or None."""
    values = values.copy()
    values[~mask] = None if values.dtype == object else np.zeros((), values.dtype)
    return values


def merged_infos(infos: Infos, more: Infos) -> Infos:
    """Returns infos with rows of `more`, which has the rows that its masks say."""
    result = dict(infos)
    for name, values, mask in masked(more):
        if name not in infos:
            result[name], result[f"_{name}"] = values, mask
            continue
        before = infos[name]
        if isinstance(values, dict) and isinstance(before, dict):
            result[name] = merged_infos(before, values)
        else:
            result[name] = _with_rows(before, values, mask)
        result[f"_{name}"] = infos[f"_{name}"] | mask
    return result


def _with_rows(values: Any, more: Any, mask: Mask) -> NDArray[Any]:
    """Returns `values` with the rows of `more` that a mask chooses, as objects if the two differ."""
    alike = all(isinstance(each, np.ndarray) for each in (values, more)) and _alike(values, more)
    result = values.copy() if alike else as_objects(values, len(mask))
    rows = more if alike else as_objects(more, len(mask))
    result[mask] = rows[mask]
    return result


def as_objects(values: Any, num_envs: int) -> NDArray[Any]:
    """Returns an array of objects, one for each row; a dictionary of infos becomes one for each row."""
    rows = infos_of_each(values, num_envs) if isinstance(values, dict) else values
    result = np.full(num_envs, None, object)
    for row in range(num_envs):
        result[row] = rows[row]
    return result


def final_infos(obs: Any, final_info: Infos, ended: Mask, space: Any = None) -> Infos:
    """Returns "final_obs" and "final_info" of the rows of a mask, with copies of their observations.

    `space` is the space of `obs`, which is needed if they are no array.
    """
    rows = obs if space is None else list(iterate(space, obs))
    last = np.full(len(ended), None, object)
    for row in np.flatnonzero(ended):
        last[row] = copied(rows[row])
    return {"final_obs": last, "_final_obs": ended.copy(), "final_info": final_info, "_final_info": ended.copy()}


def copied(obs: Any) -> Any:
    """Returns a copy of an observation's arrays, in its dictionaries and tuples."""
    return mapped(lambda array: array.copy(), obs)


def infos_of_groups(groups: Sequence[Infos]) -> Infos:
    """Returns infos of rows, of which row `i * len(groups) + k` is row i of group k. A group may have no infos."""
    rows: Infos = {}
    for index, infos in enumerate(groups):
        _spread(rows, infos, index, len(groups))
    return rows


def _spread(rows: Infos, infos: Infos, index: int, step: int) -> None:
    for name, values, mask in masked(infos):
        total = len(mask) * step
        nested = isinstance(values, dict)
        if name not in rows:
            fill = None if nested or values.dtype == object else 0
            rows[name] = {} if nested else np.full((total, *values.shape[1:]), fill, values.dtype)
            rows[f"_{name}"] = np.zeros(total, np.bool_)
        to = rows[name]
        if nested is not isinstance(to, dict) or not (nested or _alike(values, to)):
            values, nested = as_objects(values, len(mask)), False
            to = rows[name] = as_objects(to, total)
        if nested:
            _spread(to, values, index, step)
        else:
            to[index::step][mask] = values[mask]
        rows[f"_{name}"][index::step] |= mask


def _alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.shape[1:] == other.shape[1:]
