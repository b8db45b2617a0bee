"""Infos in the form that Gymnasium's vector environments give them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.description import InfoField

Mask = NDArray[np.bool_]


def collect(
    fields: tuple[InfoField, ...], rows: NDArray[np.float64], stepped: Mask, reset: Mask | None = None
) -> dict[str, Any]:
    """Makes infos of an exchange: under each name an array, under "_" and the name who has it.

    Args:
      fields: What the columns mean.
      rows: float64[num_envs, info_size]; copied.
      stepped: bool[num_envs], whose row is a step's.
      reset: bool[num_envs], whose row is a reset's; None: nobody's.

    Returns:
      Name -> array[num_envs, ...], zero for who has none; "_" + name -> bool[num_envs]. What nobody has is left out.
    """
    infos: dict[str, Any] = {}
    if not fields:
        return infos
    everybody = stepped if reset is None else stepped | reset
    columns = rows.T.copy()
    for field in fields:
        who = everybody if field.at_reset else stepped
        if not who.any():
            continue
        values = columns[field.columns].T.astype(field.dtype, order="C", copy=False)
        if not who.all():
            values[~who] = 0
        infos[field.name], infos[f"_{field.name}"] = values, who.copy()
    return infos


def add_final(
    infos: dict[str, Any],
    ended: Mask,
    final_obs: NDArray[Any],
    fields: tuple[InfoField, ...],
    final_rows: NDArray[np.float64],
) -> None:
    """Adds how episodes ended that were followed by the next in the same step.

    Args:
      infos: What `collect` made.
      ended: bool[num_envs], whose episode ended.
      final_obs: [num_envs, obs_size], of which the rows of those are copied, in the dtype that it has.
      fields: What the columns of `final_rows` mean.
      final_rows: float64[num_envs, info_size].
    """
    observations = np.full(len(ended), None, dtype=object)
    for index in np.flatnonzero(ended):
        observations[index] = final_obs[index].copy()
    infos["final_obs"], infos["_final_obs"] = observations, ended.copy()
    infos["final_info"], infos["_final_info"] = collect(fields, final_rows, ended), ended.copy()
