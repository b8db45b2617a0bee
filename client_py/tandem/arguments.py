"""Checks of arguments. Each raises InvalidArgument, whose message begins with the argument's name.

`name` is the argument's name, and `after` the end of the message.
"""

import contextlib
import enum
import operator
import os
import reprlib
from collections.abc import Sequence
from typing import Any, NoReturn, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.errors import InvalidAction, InvalidArgument

_Member = TypeVar("_Member", bound=enum.IntEnum)

_LAST_SEED = 2**64 - 1
_NOT_SENT = "; nothing was sent"

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = 80
_SHORT.maxother = 200


def shown(value: object) -> str:
    """Returns the repr of what a message calls found, shortened.

    >>> shown("knee"), len(shown("knee" * 10**6)) < 100
    ("'knee'", True)
    """
    try:
        return _SHORT.repr(value)
    except Exception:  # an exception of any type's __repr__, or an integer of too many digits
        return f"one of type {type(value).__name__}"


def described(value: object) -> str:
    """Returns dtype and shape of an array, such as "int64[3, 2]"; of another object the name of its type."""
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__


def refuse_actions(actions: object, num_envs: int, act_size: int) -> NoReturn:
    """Raises InvalidAction: says why actions are not float32[num_envs, act_size], C-contiguous and aligned."""
    layout, after = "", "pass np.ascontiguousarray(actions, dtype=np.float32)"
    if isinstance(actions, np.ndarray):
        if not actions.flags.c_contiguous:
            layout = ", not C-contiguous"
        elif not actions.flags.aligned:
            layout, after = ", not aligned", "pass actions.copy()"
        if actions.shape != (num_envs, act_size):
            after = "pass one row for each environment (client.num_envs, client.act_size)"
    raise InvalidAction(
        f"actions: expected float32[{num_envs}, {act_size}], C-contiguous, found {described(actions)}{layout}"
        f"{_NOT_SENT}; {after}"
    )


def or_zero(name: str, value: SupportsIndex | None) -> int:
    """Returns an integer from 1, or 0 for None: so the schema writes that the engine chooses."""
    return 0 if value is None else integer(name, value, 1, 2**32 - 1, _NOT_SENT)


def integer(
    name: str, value: SupportsIndex, least: int, last: int = 2**31 - 1, after: str = "", *, bools: bool = True
) -> int:
    """Returns an integer in `least` .. `last` as int; without `bools`, True is not 1."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= last or (isinstance(value, bool) and not bools):
        raise InvalidArgument(f"{name}: expected an integer in {least} .. {last}, found {shown(value)}{after}")
    return number


def text(name: str, value: object, after: str = "") -> str:
    """Returns a str that UTF-8 and a C string can hold: without lone surrogates and NULs."""
    if isinstance(value, str) and "\0" not in value:
        with contextlib.suppress(UnicodeEncodeError):
            value.encode()
            return value
    raise InvalidArgument(f"{name}: expected a str without NULs and lone surrogates, found {shown(value)}{after}")


def flag(name: str, value: object, after: str = _NOT_SENT) -> bool:
    """Returns a bool or numpy.bool_ as bool."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgument(f"{name}: expected a bool, found {shown(value)}{after}")
    return bool(value)


def member(name: str, value: object, kind: type[_Member]) -> _Member:
    """Returns the member of an enumeration of tandem.services that the value is, or whose number it is."""
    try:
        return kind(operator.index(value))  # type: ignore[arg-type]  # another type is a TypeError
    except (TypeError, ValueError):
        one = f"tandem.services.{kind.__name__}"
        names = ", ".join(f"{one}.{each.name}" for each in kind)
        raise InvalidArgument(f"{name}: expected a {one} ({names}), found {shown(value)}{_NOT_SENT}") from None


def one_of(name: str, value: object, values: tuple[str, ...]) -> None:
    """Checks that a value is one of some texts."""
    if not isinstance(value, str) or value not in values:
        raise InvalidArgument(f"{name}: expected one of {', '.join(map(repr, values))}, found {shown(value)}")


def path(name: str, value: object) -> None:
    """Checks that a value is the path of a file, or None."""
    if not isinstance(value, str | os.PathLike | None):
        raise InvalidArgument(f"{name}: expected a path, found {shown(value)}")


def rate(name: str, value: SupportsFloat, most: float = np.inf) -> float:
    """Returns a finite rate in Hz, 0 to `most`, as float."""
    number = _float_or_negative(value)
    if not 0 <= number <= most or number == np.inf:
        expected = "a finite rate in Hz, 0 or more" if most == np.inf else f"a rate of 0 to {most:g} Hz"
        raise InvalidArgument(f"{name}: expected {expected}, found {shown(value)}")
    return number


def seconds(name: str, value: SupportsFloat) -> float:
    """Returns a time in seconds, 0 to infinity, as float."""
    number = _float_or_negative(value)
    if not number >= 0:
        raise InvalidArgument(f"{name}: expected seconds, 0 or more, found {shown(value)}")
    return number


def _float_or_negative(value: SupportsFloat) -> float:
    try:
        return float(value) if isinstance(value, SupportsFloat) else -1.0
    except (TypeError, ValueError, OverflowError):  # of an array; of an integer that is too large
        return -1.0


def id_or_name(name: str, which: int | str, listed_by: str) -> dict[str, Any]:
    """Returns the field of a request that names a thing: {"id": int from 1} or {"name": str}.

    `listed_by` is the call that lists ids and names, for the message.
    """
    after = f"; {listed_by} lists them{_NOT_SENT}"
    if isinstance(which, str) and which:
        return {"name": text(name, which, after)}
    if isinstance(which, str):
        raise InvalidArgument(f"{name}: expected a name or an id, found {shown(which)}{after}")
    return {"id": integer(name, which, 1, 2**64 - 1, after)}


def _array(value: object) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except (ValueError, OverflowError):  # a ragged list; an integer that is too large
        return np.asarray(None)


def _as_float32(array: NDArray[Any]) -> NDArray[np.float32] | None:
    """Returns numbers as float32, where too large ones are infinities; None: the array holds no numbers."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32) if array.dtype.kind in "iuf" else None


def finite(name: str, value: ArrayLike | None, size: int | None = None) -> NDArray[np.float32] | None:
    """Returns a vector of finite numbers as float32[size], or None for None.

    Without a size the vector has any length from 1, and None is refused.
    """
    if value is None and size is not None:
        return None
    vector = _as_float32(_array(value))
    fits = vector is not None and (vector.shape == (size,) or (size is None and vector.ndim == 1 and vector.size > 0))
    if vector is None or not fits or not np.isfinite(vector).all():
        how_many = f"{size} finite numbers" if size is not None else "one or more finite numbers"
        raise InvalidArgument(f"{name}: expected {how_many}, found {shown(value)}{_NOT_SENT}")
    return vector


def finite_number(name: str, value: SupportsFloat) -> float:
    """Returns a finite number in float32's range as float."""
    number = _as_float32(_array(value))
    if number is None or number.shape != () or not np.isfinite(number):
        raise InvalidArgument(f"{name}: expected a finite number, found {shown(value)}{_NOT_SENT}")
    return float(value)


def env_indices(env_ids: Sequence[int] | NDArray[np.integer] | NDArray[np.bool_] | None, num_envs: int) -> list[int]:
    """Returns the indices that int[n], a mask bool[num_envs] or None (all) stands for."""
    if env_ids is None:
        return list(range(num_envs))
    ids = _array(env_ids)
    if ids.dtype == np.bool_ and ids.shape == (num_envs,):
        ids = np.flatnonzero(ids)
    elif ids.size == 0 and ids.ndim == 1:
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise InvalidArgument(
            f"env_ids: expected indices int[n] or a mask bool[{num_envs}], found {described(ids)}{_NOT_SENT}"
        )
    indices: list[int] = ids.tolist()
    if wrong := [index for index in indices if not 0 <= index < num_envs]:
        raise InvalidArgument(f"env_ids: expected indices in 0 .. {num_envs - 1}, found {wrong[0]}{_NOT_SENT}")
    return indices


def seeds_of(seed: int | Sequence[int | None] | NDArray[np.integer] | None, indices: list[int]) -> list[int | None]:
    """Returns the seed of each environment in `indices`; [] if `seed` is None.

    Of an integer, environment i gets seed + i; of a sequence, the seed at its place, where None is no seed.
    """
    if seed is None:
        return []
    if isinstance(seed, np.ndarray) and seed.ndim == 0:
        seed = seed.item()
    if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str | bytes | bytearray | memoryview):
        if len(seed) != len(indices):
            raise InvalidArgument(
                f"seed: expected {len(indices)} seeds, one for each environment that is reset, found {len(seed)}"
                f"{_NOT_SENT}"
            )
        return [None if each is None else _seed(f"seed[{number}]", each) for number, each in enumerate(seed)]
    first = _seed("seed", seed)
    last = max(indices, default=0)
    if first + last > _LAST_SEED:
        raise InvalidArgument(
            f"seed: expected at most {_LAST_SEED - last}, since environment {last} takes seed + {last}, found "
            f"{shown(seed)}{_NOT_SENT}"
        )
    return [first + index for index in indices]


def contract_seed(seed: int | None, env_id: int) -> int | None:
    """Returns the seed to send with a contract: an engine adds the environment's number to it.

    `seed` is that of the environment's reset; None: the engine chooses one.
    """
    return None if seed is None else (seed - env_id) % 2**64


def _seed(name: str, value: Any) -> int:
    return integer(name, value, 0, _LAST_SEED, _NOT_SENT)
