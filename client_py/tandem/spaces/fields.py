"""`layout`: the typed fields of a Gymnasium space, one for each part of a value.

    space = spaces.Dict(image=spaces.Box(0, 255, (64, 64, 3), np.uint8), arm=spaces.Tuple([spaces.Discrete(3)]))
    layout(space).leaves  # "/arm/0", int64, (); "/image", uint8, (64, 64, 3)

A field's path is a JSON pointer (RFC 6901) into the space. A field of a region is the array [num_envs, *shape].

| space | fields |
|---|---|
| Box, Discrete, MultiDiscrete, MultiBinary | one, of the space's dtype and shape; none for a shape without elements |
| Text | uint32[1 + max_length]: the number of characters, then their code points |
| Dict, Tuple | the fields of each item, below its key or index |
| OneOf | int64 "/index", which alternative; the fields of every alternative, below its index |
| Graph, Sequence, other spaces | none: the values are pickled |
"""

import contextlib
import math
from typing import Any, NamedTuple, NoReturn

import numpy as np
from gymnasium import spaces

from tandem._native import FIELD_TYPES, MAX_FIELD_DIMS, MAX_FIELD_PATH_BYTES, MAX_FIELD_VALUES, MAX_FIELDS
from tandem.arguments import shown, text
from tandem.errors import InvalidArgument, Unsupported

FIELD_DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in FIELD_TYPES}

# The spaces whose values are arrays or numbers of one dtype and shape.
NUMERIC = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary


class Leaf(NamedTuple):
    """One part of a value, which has a field of its own; its shape is in one environment.

    `path` is a JSON pointer into the space, "" the whole space; `dtype` one of `FIELD_DTYPES`.
    """

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Layout(NamedTuple):
    """The parts of a space's values, in the order of the space, and the paths of those that are pickled."""

    leaves: tuple[Leaf, ...]
    pickled: tuple[str, ...]


def layout(space: spaces.Space[Any], name: str = "observation_space") -> Layout:
    """Returns the fields of a space of one environment; error messages call it `name`.

    Raises:
      InvalidArgument: No space.
      Unsupported: Another dtype than those of `FIELD_DTYPES`, a key that is not a text, or more than the limits.

    >>> layout(spaces.Dict({"a/b": spaces.MultiBinary([2, 3])})).leaves
    (Leaf(path='/a~1b', dtype=dtype('int8'), shape=(2, 3)),)
    """
    if not isinstance(space, spaces.Space):
        raise InvalidArgument(f"{name}: expected a gymnasium.Space, found {shown(space)}")
    leaves: list[Leaf] = []
    pickled: list[str] = []
    _add(space, "", name, leaves, pickled)
    if len(leaves) > MAX_FIELDS:
        refuse(name, "", f"at most {MAX_FIELDS} fields", str(len(leaves)), "join Boxes of one dtype")
    return Layout(tuple(leaves), tuple(pickled))


def key_path(path: str, key: object, name: str) -> str:
    """Returns the path of a Dict's key below a path; `name` is what an error message calls the space.

    Unsupported: The key is not a str, or has a NUL or a lone surrogate, which a field's path cannot hold.
    """
    with contextlib.suppress(InvalidArgument):
        return f"{path}/{text('key', key).replace('~', '~0').replace('/', '~1')}"
    refuse(name, path, "keys of type str without NULs and lone surrogates", shown(key), "rename the key in a wrapper")


def field_dtype(dtype: object, path: str, name: str) -> np.dtype[Any]:
    """Returns the one of `FIELD_DTYPES` that a space's dtype is; Unsupported if it is none."""
    for known in FIELD_DTYPES.values():
        if dtype == known:  # also of equal types with two names, such as longlong; not of another byte order
            return known
    refuse(name, path, f"one of the dtypes {', '.join(FIELD_DTYPES)}", str(dtype), "convert it in a wrapper")


def refuse(name: str, path: str, expected: str, found: str, after: str) -> NoReturn:
    """Raises Unsupported for a part of a space."""
    raise Unsupported(f"{name}{place(path)}: expected {expected}, found {found}; {after}")


def place(path: str) -> str:
    """Returns what an error message says after the name of a space or value; "" for the whole."""
    return path and f" at {shown(path)}"


def _add(space: spaces.Space[Any], path: str, name: str, leaves: list[Leaf], pickled: list[str]) -> None:
    _check_path(path, name)  # also of a part without a field: so the depth has a limit
    if isinstance(space, spaces.Dict):
        for key, item in space.spaces.items():
            _add(item, key_path(path, key, name), name, leaves, pickled)
    elif isinstance(space, spaces.Tuple | spaces.OneOf):
        if isinstance(space, spaces.OneOf):
            _add_leaf(Leaf(f"{path}/index", FIELD_DTYPES["int64"], ()), name, leaves)
        for index, item in enumerate(space.spaces):
            _add(item, f"{path}/{index}", name, leaves, pickled)
    elif isinstance(space, spaces.Text):
        _add_leaf(Leaf(path, FIELD_DTYPES["uint32"], (1 + space.max_length,)), name, leaves)
    elif isinstance(space, NUMERIC):
        dtype = field_dtype(space.dtype, path, name)
        _add_leaf(Leaf(path, dtype, space.shape or ()), name, leaves)
    else:
        pickled.append(path)


def _check_path(path: str, name: str) -> None:
    if (found := len(path.encode())) > MAX_FIELD_PATH_BYTES:
        refuse(name, path, f"paths of at most {MAX_FIELD_PATH_BYTES} bytes", str(found), "use shorter keys")


def _add_leaf(leaf: Leaf, name: str, leaves: list[Leaf]) -> None:
    _check_path(leaf.path, name)
    if len(leaf.shape) > MAX_FIELD_DIMS:
        expected = f"at most {MAX_FIELD_DIMS} dimensions"
        refuse(name, leaf.path, expected, shown(leaf.shape), "reshape it in a wrapper")
    if math.prod(leaf.shape) > MAX_FIELD_VALUES:
        refuse(name, leaf.path, f"at most {MAX_FIELD_VALUES} values", shown(leaf.shape), "make it smaller in a wrapper")
    if 0 not in leaf.shape:
        leaves.append(leaf)
