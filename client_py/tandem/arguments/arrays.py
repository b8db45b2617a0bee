"""Checks of arguments that are arrays, or numbers for each environment. `arguments` describes the messages."""

from collections.abc import Sequence
from typing import Any, NoReturn, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.arguments import NOT_SENT, integer, shown
from tandem.errors import InvalidAction, InvalidArgument

_LAST_SEED = 2**64 - 1


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
        f"{NOT_SENT}; {after}"
    )


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
        raise InvalidArgument(f"{name}: expected {how_many}, found {shown(value)}{NOT_SENT}")
    return vector


def finite_number(name: str, value: SupportsFloat) -> float:
    """Returns a finite number in float32's range as float."""
    number = _as_float32(_array(value))
    if number is None or number.shape != () or not np.isfinite(number):
        raise InvalidArgument(f"{name}: expected a finite number, found {shown(value)}{NOT_SENT}")
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
            f"env_ids: expected indices int[n] or a mask bool[{num_envs}], found {described(ids)}{NOT_SENT}"
        )
    indices: list[int] = ids.tolist()
    if wrong := [index for index in indices if not 0 <= index < num_envs]:
        raise InvalidArgument(f"env_ids: expected indices in 0 .. {num_envs - 1}, found {wrong[0]}{NOT_SENT}")
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
                f"{NOT_SENT}"
            )
        return [None if each is None else _seed(f"seed[{number}]", each) for number, each in enumerate(seed)]
    first = _seed("seed", seed)
    last = max(indices, default=0)
    if first + last > _LAST_SEED:
        raise InvalidArgument(
            f"seed: expected at most {_LAST_SEED - last}, since environment {last} takes seed + {last}, found "
            f"{shown(seed)}{NOT_SENT}"
        )
    return [first + index for index in indices]


def contract_seed(seed: int | None, env_id: int) -> int | None:
    """Returns the seed to send with a contract: an engine adds the environment's number to it.

    `seed` is that of the environment's reset; None: the engine chooses one.
    """
    return None if seed is None else (seed - env_id) % 2**64


def _seed(name: str, value: Any) -> int:
    return integer(name, value, 0, _LAST_SEED, NOT_SENT)
