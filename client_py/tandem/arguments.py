"""Checks of arguments; what cannot be is `InvalidArgument`, which has the argument's name."""

import enum
import operator
import os
import reprlib
from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.errors import InvalidArgument

_Member = TypeVar("_Member", bound=enum.IntEnum)

_LAST_SEED = 2**64 - 1

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = 80
_SHORT.maxother = 200


def shown(value: object) -> str:
    """Says what was found where something else was expected.

    Args:
      value: It.

    Returns:
      Its repr, or a part of it: a message stays a message, whatever it is about.

    >>> shown("knee"), len(shown("knee" * 10**6)) < 100
    ("'knee'", True)
    """
    try:
        return _SHORT.repr(value)
    except Exception:  # any type's own, and an integer of too many digits
        return f"one of type {type(value).__name__}"


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
        raise InvalidArgument(f"{name}: expected an integer in {least} .. {last}, found {shown(value)}{after}")
    return number


def text(name: str, value: object, after: str = "") -> str:
    """Takes a text that can be written as UTF-8 and ends nowhere before its end.

    Args:
      name: The argument's.
      value: What was given.
      after: What follows in the message.

    Returns:
      It.

    Raises:
      InvalidArgument: Another type, a NUL in it, or a surrogate without its pair.
    """
    if isinstance(value, str) and "\0" not in value:
        try:
            value.encode()
        except UnicodeEncodeError:
            pass
        else:
            return value
    raise InvalidArgument(f"{name}: expected a str without NULs and lone surrogates, found {shown(value)}{after}")


def flag(name: str, value: object, after: str = "; nothing was sent") -> bool:
    """Takes a yes or no.

    Args:
      name: The argument's.
      value: What was given.
      after: What follows in the message.

    Returns:
      It, as a Python bool.

    Raises:
      InvalidArgument: Another type.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgument(f"{name}: expected a bool, found {shown(value)}{after}")
    return bool(value)


def member(name: str, value: object, kind: type[_Member]) -> _Member:
    """Takes one of an enumeration.

    Args:
      name: The argument's.
      value: What was given: a member, or its number.
      kind: The enumeration.

    Returns:
      The member.

    Raises:
      InvalidArgument: None of them.
    """
    try:
        return kind(operator.index(value))  # type: ignore[arg-type]  # another type is a TypeError
    except (TypeError, ValueError):
        one = f"tandem.services.{kind.__name__}"
        names = ", ".join(f"{one}.{each.name}" for each in kind)
        raise InvalidArgument(f"{name}: expected a {one} ({names}), found {shown(value)}; nothing was sent") from None


def one_of(argument: str, value: object, values: tuple[str, ...]) -> None:
    """Checks a choice.

    Args:
      argument: Its name.
      value: What was given.
      values: What it may be.

    Raises:
      InvalidArgument: None of them.
    """
    if not isinstance(value, str) or value not in values:
        raise InvalidArgument(f"{argument}: expected one of {', '.join(map(repr, values))}, found {shown(value)}")


def path(argument: str, value: object) -> None:
    """Checks the path of a file.

    Args:
      argument: Its name.
      value: What was given.

    Raises:
      InvalidArgument: Neither a path nor None.
    """
    if not isinstance(value, str | os.PathLike | None):
        raise InvalidArgument(f"{argument}: expected a path, found {shown(value)}")


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
    number = _float_or_negative(value)
    if not 0 <= number < np.inf:
        raise InvalidArgument(f"{name}: expected a finite rate in Hz, 0 or more, found {shown(value)}")
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
    number = _float_or_negative(value)
    if not number >= 0:
        raise InvalidArgument(f"{name}: expected seconds, 0 or more, found {shown(value)}")
    return number


def _float_or_negative(value: SupportsFloat) -> float:
    try:
        return float(value) if isinstance(value, SupportsFloat) else -1.0
    except (TypeError, ValueError, OverflowError):  # of an array; of an integer that is too large
        return -1.0


def id_or_name(argument: str, which: int | str, listed_by: str) -> dict[str, Any]:
    """Says which thing is meant, as requests do.

    Args:
      argument: Its name.
      which: An id from 1, or a name.
      listed_by: The call that says which there are.

    Returns:
      The field of the request.

    Raises:
      InvalidArgument: Neither of both.
    """
    after = f"; {listed_by} lists them; nothing was sent"
    if isinstance(which, str) and which:
        return {"name": text(argument, which, after)}
    if isinstance(which, str):
        raise InvalidArgument(f"{argument}: expected a name or an id, found {shown(which)}{after}")
    return {"id": integer(argument, which, 1, 2**64 - 1, after)}


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
    except (ValueError, OverflowError):  # ragged; an integer that is too large
        given = np.asarray(None)
    with np.errstate(over="ignore"):  # an infinity, which is refused
        vector = given.astype(np.float32) if given.dtype.kind in "iuf" else None
    fits = vector is not None and (vector.shape == (size,) or (size is None and vector.ndim == 1 and vector.size > 0))
    if vector is None or not fits or not np.isfinite(vector).all():
        how_many = f"{size} finite numbers" if size is not None else "one or more finite numbers"
        raise InvalidArgument(f"{argument}: expected {how_many}, found {shown(value)}; nothing was sent")
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
    try:
        given = np.asarray(value)
    except (ValueError, OverflowError):
        given = np.asarray(None)
    with np.errstate(over="ignore"):
        good = given.shape == () and given.dtype.kind in "iuf" and bool(np.isfinite(given.astype(np.float32)))
    if not good:
        raise InvalidArgument(f"{argument}: expected a finite number, found {shown(value)}; nothing was sent")
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
    try:
        ids = np.asarray(env_ids)
    except (ValueError, OverflowError):
        ids = np.asarray(None)
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
    if isinstance(seed, np.ndarray) and seed.ndim == 0:
        seed = seed.item()
    if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str | bytes | bytearray | memoryview):
        if len(seed) != len(indices):
            raise InvalidArgument(
                f"seed: expected {len(indices)} seeds, one for each environment that is reset, found {len(seed)}; "
                "nothing was sent"
            )
        return [None if each is None else _seed(f"seed[{number}]", each) for number, each in enumerate(seed)]
    first = _seed("seed", seed)
    last = max(indices, default=0)
    if first + last > _LAST_SEED:
        raise InvalidArgument(
            f"seed: expected at most {_LAST_SEED - last}, since environment {last} takes seed + {last}, found "
            f"{shown(seed)}; nothing was sent"
        )
    return [first + index for index in indices]


def contract_seed(seed: int | None, env_id: int) -> int | None:
    """Says from which number an environment draws what its contract asks for.

    Args:
      seed: That of its reset.
      env_id: The environment.

    Returns:
      What an engine is told, which adds the environment's number; None: the engine takes one of its own.
    """
    return None if seed is None else (seed - env_id) % 2**64


def _seed(name: str, value: Any) -> int:
    return integer(name, value, 0, _LAST_SEED, "; nothing was sent")
