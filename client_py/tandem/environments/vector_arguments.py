"""Arguments of a vector environment's calls: actions, seeds, masks, the dtype of observations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tandem.arguments import shown
from tandem.arguments.arrays import described, env_indices
from tandem.errors import InvalidAction, InvalidArgument

Mask = NDArray[np.bool_]
Seed = int | Sequence[int | None] | None


def as_floats(single: "spaces.Box | spaces.Discrete[np.int64]", count: int, actions: ArrayLike) -> NDArray[np.float32]:
    """Converts the actions of `count` environments to float32[count, act_size].

    `single` is the action space of one environment. A number out of float32's range becomes an infinity, which the
    client refuses. Another shape or kind, or a discrete action out of range, is InvalidAction.
    """
    try:
        given = np.asarray(actions)
    except ValueError as error:
        raise InvalidAction(
            f"actions: expected {batch_space(single, count)}, found no array of numbers: {error}; nothing was sent; "
            "action_space.sample() shows what fits"
        ) from error
    discrete = isinstance(single, spaces.Discrete)
    shape = (count, *(single.shape or ()))
    if given.shape != shape or given.dtype.kind not in ("iu" if discrete else "iuf"):
        raise InvalidAction(
            f"actions: expected {single.dtype}{list(shape)}, one for each environment, found "
            f"{described(given)}; nothing was sent; action_space.sample() shows what fits"
        )
    if isinstance(single, spaces.Discrete):
        wrong = (given < 0) | (given >= single.n)
        if wrong.any():
            index = int(np.argmax(wrong))
            raise InvalidAction(
                f"actions: expected 0 .. {single.n - 1}, found {given[index]} for environment {index}; nothing "
                "was sent; see single_action_space"
            )
        return given.reshape(-1, 1).astype(np.float32)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(given, dtype=np.float32)


def distinct_ids(env_ids: Sequence[int] | NDArray[Any], num_envs: int) -> list[int]:
    """Returns the indices of int[n] or a mask bool[num_envs]. InvalidArgument: none, one twice, or one out of range."""
    ids = env_indices(env_ids, num_envs)
    if not ids or len(set(ids)) != len(ids):
        raise InvalidArgument(
            f"env_ids: expected one or more different environments, found {shown(ids)}; nothing was sent"
        )
    return ids


def reset_mask(options: Mapping[str, Any] | None, num_envs: int, others: tuple[str, ...] | None) -> Mask:
    """Returns bool[num_envs], the caller's to keep: the environments to reset, by the options of a reset.

    `others` are the known options besides "reset_mask"; None: any. An unknown option, another mask, or a mask without a
    True is InvalidArgument.
    """
    if not isinstance(options, Mapping | None):
        raise InvalidArgument(f"options: expected None or a dict, found {shown(options)}; nothing was sent")
    if others is not None and (unknown := sorted(set(options or ()) - {"reset_mask", *others}, key=str)):
        raise InvalidArgument(
            f"options: expected nothing but 'reset_mask' and 'contract', found {shown(unknown)}; nothing was sent; "
            "options of the task are make_vec's"
        )
    if not options or "reset_mask" not in options:
        return np.ones(num_envs, np.bool_)
    mask: Any = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        raise InvalidArgument(
            f"reset_mask: expected a NumPy array bool[{num_envs}], found {described(mask)}; nothing was sent"
        )
    if not mask.any():
        raise InvalidArgument("reset_mask: expected at least one True, found none; nothing was sent; omit the call")
    return np.array(mask, dtype=np.bool_)


def seed_of_chosen(seed: Seed, mask: Mask) -> Seed:
    """Returns the seeds of the environments that a mask bool[num_envs] chooses, for `SharedMemoryClient.reset`.

    Another number of seeds than environments is InvalidArgument.
    """
    if isinstance(seed, np.ndarray) and seed.ndim == 0:
        return seed.item()
    if not isinstance(seed, Sequence | np.ndarray):
        return seed
    if len(seed) != len(mask):
        raise InvalidArgument(
            f"seed: expected {len(mask)} seeds, one for each environment, found {len(seed)}; nothing was sent; "
            "a single integer is enough"
        )
    return [each for each, chosen in zip(seed, mask, strict=True) if chosen]


def obs_dtype(of_task: np.dtype[Any], asked: DTypeLike | None, copy: bool) -> np.dtype[Any]:
    """Returns the dtype of observations, float32 or float64, by the arguments `dtype` and `copy` of `make_vec`.

    `of_task` is the task's own. Another dtype, or float64 without copies, is InvalidArgument.
    """
    float32 = np.dtype(np.float32)
    if asked is None:
        return of_task if copy else float32
    try:
        dtype = np.dtype(asked)
    except (TypeError, ValueError, SyntaxError):  # the last one of a text with parentheses or commas
        dtype = np.dtype(object)
    if dtype not in (float32, np.dtype(np.float64)):
        raise InvalidArgument(f"dtype: expected float32 or float64, found {shown(asked)}")
    if not copy and dtype != float32:
        raise InvalidArgument(f"dtype: expected float32 with copy=False, as the region's own array is, found {dtype}")
    return dtype
