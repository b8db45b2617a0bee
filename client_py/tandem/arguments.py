"""Checks of arguments; what cannot be is `InvalidArgument`, which has the argument's name."""

import operator
from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.errors import InvalidArgument


def integer(name: str, value: SupportsIndex, least: int, last: int = 2**31 - 1, after: str = "") -> int:
    """Takes a whole number.

    Args:
      name: The argument's.
      value: What was given.
      least: The smallest number that can be.
      last: The largest.
      after: What follows in the message.

    Returns:
      It, as a Python integer.

    Raises:
      InvalidArgument: Another type, or beyond the limits.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= last:
        raise InvalidArgument(f"{name}: expected an integer in {least} .. {last}, found {value!r}{after}")
    return number


def described(value: object) -> str:
    """Says what was found where an array was expected.

    Args:
      value: It.

    Returns:
      Dtype and shape of an array, such as "int64[3, 2]"; the type's name of anything else.
    """
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__


def rate(name: str, value: SupportsFloat) -> float:
    """Takes a number of times a second.

    Args:
      name: The argument's.
      value: What was given.

    Returns:
      It, as a Python float.

    Raises:
      InvalidArgument: No number, negative, infinite or NaN.
    """
    number = float(value) if isinstance(value, SupportsFloat) else -1.0
    if not 0 <= number < np.inf:
        raise InvalidArgument(f"{name}: expected a finite rate in Hz, 0 or more, found {value!r}")
    return number


def seconds(name: str, value: SupportsFloat) -> float:
    """Takes a time to wait.

    Args:
      name: The argument's.
      value: What was given; infinity is fine.

    Returns:
      It, as a Python float.

    Raises:
      InvalidArgument: No number, negative or NaN.
    """
    number = float(value) if isinstance(value, SupportsFloat) else -1.0
    if not number >= 0:
        raise InvalidArgument(f"{name}: expected seconds, 0 or more, found {value!r}")
    return number


def id_or_name(argument: str, which: int | str) -> dict[str, Any]:
    """Says which thing is meant, as requests do.

    Args:
      argument: Its name.
      which: An id from 1, or a name.

    Returns:
      The field of the request.

    Raises:
      InvalidArgument: Neither of both.
    """
    if isinstance(which, str) and which:
        return {"name": which}
    if isinstance(which, str):
        raise InvalidArgument(f"{argument}: expected a name or an id, found {which!r}; nothing was sent")
    return {"id": integer(argument, which, 1, 2**64 - 1, "; nothing was sent")}


def finite(argument: str, value: ArrayLike | None, size: int | None = None) -> NDArray[np.float32] | None:
    """Takes a vector.

    Args:
      argument: Its name.
      value: float[size], or None where a size is given.
      size: Of how many numbers; None: any, from one.

    Returns:
      It as float32[size], or None.

    Raises:
      InvalidArgument: Not so many, no numbers, or not finite.
    """
    if value is None and size is not None:
        return None
    try:
        given = np.asarray(value)
    except ValueError:  # ragged
        given = np.asarray(None)
    with np.errstate(over="ignore"):  # an infinity, which is refused
        vector = given.astype(np.float32) if given.dtype.kind in "iuf" else None
    fits = vector is not None and (vector.shape == (size,) or (size is None and vector.ndim == 1 and vector.size > 0))
    if vector is None or not fits or not np.isfinite(vector).all():
        how_many = f"{size} finite numbers" if size is not None else "one or more finite numbers"
        raise InvalidArgument(f"{argument}: expected {how_many}, found {value!r}; nothing was sent")
    return vector


def finite_number(argument: str, value: SupportsFloat) -> float:
    """Takes a number.

    Args:
      argument: Its name.
      value: What was given.

    Returns:
      It, as a Python float.

    Raises:
      InvalidArgument: No number, not finite, or not in float32's range.
    """
    given = np.asarray(value, dtype=object) if value is None else np.asarray(value)
    with np.errstate(over="ignore"):
        good = given.shape == () and given.dtype.kind in "iuf" and bool(np.isfinite(given.astype(np.float32)))
    if not good:
        raise InvalidArgument(f"{argument}: expected a finite number, found {value!r}; nothing was sent")
    return float(value)


def env_indices(env_ids: Sequence[int] | NDArray[np.integer] | NDArray[np.bool_] | None, num_envs: int) -> list[int]:
    """Takes a choice of environments.

    Args:
      env_ids: Indices, or a mask bool[num_envs]; None: all.
      num_envs: How many there are.

    Returns:
      Their indices.

    Raises:
      InvalidArgument: Another type or shape, or an index out of range.
    """
    if env_ids is None:
        return list(range(num_envs))
    ids = np.asarray(env_ids)
    if ids.dtype == np.bool_ and ids.shape == (num_envs,):
        ids = np.flatnonzero(ids)
    elif ids.size == 0 and ids.ndim == 1:
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise InvalidArgument(
            f"env_ids: expected indices int[n] or a mask bool[{num_envs}], "
            f"found {ids.dtype}{list(ids.shape)}; nothing was sent"
        )
    indices: list[int] = ids.tolist()
    if wrong := [index for index in indices if not 0 <= index < num_envs]:
        raise InvalidArgument(f"env_ids: expected indices in 0 .. {num_envs - 1}, found {wrong[0]}; nothing was sent")
    return indices


def seeds_of(seed: int | Sequence[int | None] | NDArray[np.integer] | None, indices: list[int]) -> list[int | None]:
    """Gives each environment its seed.

    Args:
      seed: That of environment 0, or one for each of `indices`; None, for all or for one: none.
      indices: The environments.

    Returns:
      Theirs, in their order; [] if none has one.

    Raises:
      InvalidArgument: Another number of seeds, or no integer in 0 .. 2^64 - 1.
    """
    if seed is None:
        return []
    if isinstance(seed, Sequence | np.ndarray):
        if len(seed) != len(indices):
            raise InvalidArgument(f"seed: expected {len(indices)} seeds, found {len(seed)}; nothing was sent")
        return [None if each is None else _seed(each) for each in seed]
    first = _seed(seed)
    return [_seed(first + index) for index in indices]


def contract_seed(seed: int | None, env_id: int) -> int | None:
    """Says from which number an environment draws what its contract asks for.

    Args:
      seed: That of its reset.
      env_id: The environment.

    Returns:
      What an engine is told, which adds the environment's number; None: the engine takes one of its own.
    """
    return None if seed is None else (seed - env_id) % 2**64


def _seed(value: SupportsIndex) -> int:
    return integer("seed", value, 0, 2**64 - 1, "; nothing was sent")
