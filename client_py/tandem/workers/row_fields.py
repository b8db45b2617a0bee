"""The fields of a region for environments in Python: how the trainer plans them, and where both sides find them.

    plan = plan_fields(observation_space, action_space)  # obs_size, act_size, fields: of the region
    arrays, objects = arrays_of(region_fields, "obs", observation_space, first_env=4, num_envs=8)

A space that is one float32 Box has float32 rows, as the engines' tasks have. Each other part of a space has a field. A
part without a type of its own, such as a Graph, has a field of bytes, which hold its pickle.
"""

import math
import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tandem.errors import BrokenPeer, InvalidArgument
from tandem.spaces.batch_parts import Objects
from tandem.spaces.fields import layout

FieldSpec = tuple[str, str, tuple[int, ...], str]  # role, type, shape, path
Fields = Mapping[tuple[str, str], NDArray[Any]]  # by role and path: dtype[num_envs, *shape]

# The results of one environment, beside the region's float32 rewards.
_RESULTS: list[FieldSpec] = [
    ("reward", "float64", (), ""),
    ("status", "uint8", (), ""),
    ("episode_return", "float64", (), ""),
    ("episode_length", "int64", (), ""),
]
_LENGTH_BYTES = 8


class FieldsPlan(NamedTuple):
    """What a region's spec needs: float32 values of an observation and of an action, 0: they are in `fields`.

    `fields` are rows of role, type, shape and path; `pickled` the parts whose values are pickled, such as
    "observation_space" or "action_space at '/graph'".
    """

    obs_size: int
    act_size: int
    fields: list[FieldSpec]
    pickled: list[str]


def plan_fields(observation_space: spaces.Space[Any], action_space: spaces.Space[Any], object_bytes: int) -> FieldsPlan:
    """Plans the fields of the spaces of one environment; Unsupported as `tandem.spaces.fields.layout`.

    `object_bytes` is the longest pickle of one value of a part without a type.
    """
    sizes, fields, pickled = [], list(_RESULTS), []
    for role, name, space in (
        ("obs", "observation_space", observation_space),
        ("action", "action_space", action_space),
    ):
        sizes.append(_row_size(space))
        parts = layout(space, name)
        pickled += [f"{name} at {path!r}" if path else name for path in parts.pickled]
        if sizes[-1] == 0:
            fields += [(role, leaf.dtype.name, leaf.shape, leaf.path) for leaf in parts.leaves]
            fields += [(role, "uint8", (_LENGTH_BYTES + object_bytes,), path) for path in parts.pickled]
            if not parts.leaves and not parts.pickled:  # a region has an observation and an action
                fields.append((role, "uint8", (), ""))
    return FieldsPlan(sizes[0], sizes[1], fields, pickled)


def arrays_of(
    fields: Fields, role: str, space: spaces.Space[Any], first_env: int, num_envs: int
) -> tuple[dict[str, NDArray[Any]], dict[str, Objects]]:
    """Returns the arguments `arrays` and `objects` of `Observations` or `Actions` for some environments of a region.

    `fields` are the region's, `space` that of one environment; `role` is "obs", "final_obs" or "action".
    """
    rows = slice(first_env, first_env + num_envs)
    parts = layout(space)
    arrays = {leaf.path: fields[role, leaf.path][rows].reshape(num_envs, *leaf.shape) for leaf in parts.leaves}
    return arrays, {path: PickledRows(fields[role, path][rows]) for path in parts.pickled}


class PickledRows:
    """Objects in rows of bytes: a length, then a pickle. Its reader trusts its writer."""

    def __init__(self, rows: NDArray[np.uint8]) -> None:
        """Takes uint8[num_envs, bytes]."""
        self._rows = rows

    def __setitem__(self, index: int, value: Any) -> None:
        """Pickles a value; InvalidArgument if the row has no room for it."""
        data = cloudpickle.dumps(value, protocol=5)
        row = self._rows[index]
        room = len(row) - _LENGTH_BYTES
        if len(data) > room:
            raise InvalidArgument(
                f"a value of the type {type(value).__name__}: expected at most {room} bytes when pickled, found "
                f"{len(data)}; WorkerOptions(object_bytes=...) sets the limit"
            )
        row[:_LENGTH_BYTES].view(np.uint64)[0] = len(data)
        row[_LENGTH_BYTES : _LENGTH_BYTES + len(data)] = np.frombuffer(data, np.uint8)

    def __getitem__(self, index: int) -> Any:
        """Returns a new object; None before the first value; BrokenPeer if the length is invalid."""
        row = self._rows[index]
        length = int(row[:_LENGTH_BYTES].view(np.uint64)[0])
        if length == 0:
            return None
        if length > len(row) - _LENGTH_BYTES:
            raise BrokenPeer(
                f"a pickled value: expected at most {len(row) - _LENGTH_BYTES} bytes, found the length {length}"
            )
        return pickle.loads(row[_LENGTH_BYTES : _LENGTH_BYTES + length].tobytes())


def _row_size(space: spaces.Space[Any]) -> int:
    """Returns the number of float32 values if the space is one float32 Box, else 0."""
    if not isinstance(space, spaces.Box) or space.dtype != np.float32:
        return 0
    return math.prod(space.shape)
