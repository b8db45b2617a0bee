"""An engine's description of its task, as Gymnasium's spaces and infos."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from tandem.client import SharedMemoryClient
from tandem.errors import LayoutMismatch, Unsupported
from tandem.spaces.fields import FIELD_DTYPES
from tandem.spaces.space_json import space_from_json

# Of the values that float32 rows and float64 infos stand for.
_DTYPES = {name: FIELD_DTYPES[name] for name in ("float64", "float32", "int64")}


class InfoField(NamedTuple):
    """One entry of infos, and its columns in a row of the region's array.

    `length` is None for a number, in one column. `dtype` is of Gymnasium's own value; the region holds float64.
    `at_reset`: whether a reset gives it as well; steps always do.
    """

    name: str
    first: int
    length: int | None
    dtype: np.dtype[Any]
    at_reset: bool


@dataclass(frozen=True)
class TaskDescription:
    """The task of one environment; infos are in the order of their columns.

    The spaces are the task's own; the observations' dtype may be wider than the region's float32. `max_episode_steps`:
    steps that truncate an episode; None: no limit.
    """

    observation_space: spaces.Space[Any]  # a Box, and a Box or Discrete, if they are float32 rows
    action_space: spaces.Space[Any]
    infos: tuple[InfoField, ...]
    max_episode_steps: int | None


def describe(client: SharedMemoryClient) -> TaskDescription:
    """Returns the description of a client's task; without one, unbounded float32 boxes and no infos.

    Raises:
      LayoutMismatch: The description is invalid, or does not fit the region's arrays.
      Unsupported: The observations or actions are fields, and the description has no space for them.
    """
    if not client.description:
        if not has_rows(client):
            raise _without_spaces(client, "no description")
        return TaskDescription(_unbounded(client.obs_size), _unbounded(client.act_size), (), None)
    try:
        said = json.loads(client.description)
        observation_space: spaces.Space[Any]
        action_space: spaces.Space[Any]
        if has_rows(client):
            observation_space = _space(said["observation_space"], client.obs_size)
            action_space = _space(said["action_space"], client.act_size)
            if not isinstance(observation_space, spaces.Box):
                raise ValueError(f"expected a Box of observations, found {observation_space}")
        else:
            observation_space = space_from_json(said["observation_space"])
            action_space = space_from_json(said["action_space"])
        return TaskDescription(
            observation_space,
            action_space,
            _infos(said["infos"], client.infos.shape[1]),
            int(said["max_episode_steps"]) or None,
        )
    except Unsupported as error:
        raise _without_spaces(client, str(error)) from error
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise LayoutMismatch(
            f"region {client.name!r}: expected the description of a task that fits its arrays (observations "
            f"[{client.obs_size}], actions [{client.act_size}], infos [{client.infos.shape[1]}]), found "
            f"{client.description[:200]!r} ({error!r}). Engine and client must be of the same Tandem version"
        ) from error


def has_rows(client: SharedMemoryClient) -> bool:
    """Returns whether observations and actions are float32 rows, not fields."""
    return client.obs_size != 0 and client.act_size != 0


def _without_spaces(client: SharedMemoryClient, found: str) -> Unsupported:
    fields = [key for key in client.fields if key[0] in ("action", "obs")]
    return Unsupported(
        f"region {client.name!r}: expected the spaces of the fields {fields}, found {found}; use them as "
        f"client.fields{list(fields[0])}, between calls of client.step(client.actions)"
    )


def _unbounded(size: int) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def _space(said: dict[str, Any], size: int) -> "spaces.Box | spaces.Discrete[np.int64]":
    """Returns a space whose values fit a row of `size` float32."""
    if said["type"] == "Box" and said["shape"] != [size]:
        raise ValueError(f"expected a Box of shape [{size}], found {said['shape']}")
    space = space_from_json(said)
    if isinstance(space, spaces.Box) and space.dtype.name in _DTYPES:
        return space
    if isinstance(space, spaces.Discrete) and size == 1 and space == spaces.Discrete(int(space.n)):
        return space
    raise ValueError(f"expected a Box of {size} values or, of 1, a Discrete, found {space}")


def _infos(said: list[dict[str, Any]], columns: int) -> tuple[InfoField, ...]:
    fields = []
    at = 0
    for each in said:
        length = None if each["length"] is None else int(each["length"])
        end = at + (1 if length is None else length)
        if end < at or end > columns:
            raise ValueError(f"infos: expected {columns} columns, found more")
        fields.append(InfoField(str(each["name"]), at, length, _DTYPES[each["dtype"]], bool(each["at_reset"])))
        at = end
    if at != columns:
        raise ValueError(f"infos: expected {columns} columns, found {at}")
    return tuple(fields)
