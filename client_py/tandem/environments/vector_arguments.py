"""Arguments of a vector environment's calls: actions, seeds, masks, the dtype of observations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tandem.arguments import described, shown
from tandem.errors import InvalidAction, InvalidArgument

Mask = NDArray[np.bool_]
Seed = int | Sequence[int | None] | None


def as_floats(
    single: "spaces.Box | spaces.Discrete[np.int64]", batched: spaces.Space[Any], actions: ArrayLike
) -> NDArray[np.float32]:
    """Converts the actions of a step.

    Args:
      single: The action space of one environment.
      batched: That of all environments.
      actions: As for `SharedMemoryVectorEnv.step`.

    Returns:
      float32[num_envs, act_size]; a number that float32 cannot hold is an infinity, which the client refuses.

    Raises:
      InvalidAction: Another shape or kind, or a discrete action out of its range.
    """
    try:
        given = np.asarray(actions)
    except ValueError as error:
        raise InvalidAction(
            f"actions: expected {batched}, found no array of numbers: {error}; nothing was sent; "
            "action_space.sample() shows what fits"
        ) from error
    discrete = isinstance(single, spaces.Discrete)
    if given.shape != batched.shape or given.dtype.kind not in ("iu" if discrete else "iuf"):
        raise InvalidAction(
            f"actions: expected {batched.dtype}{list(batched.shape or ())}, one for each environment, found "
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


def reset_mask(options: Mapping[str, Any] | None, num_envs: int) -> Mask:
    """Takes the mask out of the options of a reset.

    Args:
      options: As for `SharedMemoryVectorEnv.reset`.
      num_envs: Number of environments.

    Returns:
      bool[num_envs], the caller's to keep: the environments to reset.

    Raises:
      InvalidArgument: An unknown option, a mask of another type, dtype or shape, or one without a True.
    """
    if not isinstance(options, Mapping | None):
        raise InvalidArgument(f"options: expected None or a dict, found {shown(options)}; nothing was sent")
    if unknown := sorted(set(options or ()) - {"reset_mask", "contract"}, key=str):
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
        raise InvalidArgument(
            "reset_mask: expected at least one True, found none; nothing was sent; leave the call out"
        )
    return np.array(mask, dtype=np.bool_)


def seed_of_chosen(seed: Seed, mask: Mask) -> Seed:
    """Takes the seeds of the environments that a mask chooses.

    Args:
      seed: As for `SharedMemoryVectorEnv.reset`.
      mask: bool[num_envs].

    Returns:
      As for `SharedMemoryClient.reset`: a list has one entry for each chosen environment.

    Raises:
      InvalidArgument: Another number of seeds than environments.
    """
    if isinstance(seed, np.ndarray) and seed.ndim == 0:
        return seed.item()
    if not isinstance(seed, Sequence | np.ndarray):
        return seed
    if len(seed) != len(mask):
        raise InvalidArgument(
            f"seed: expected {len(mask)} seeds, one for each environment, found {len(seed)}; nothing was sent; "
            "a single integer does for all"
        )
    return [each for each, chosen in zip(seed, mask, strict=True) if chosen]


def obs_dtype(of_task: np.dtype[Any], asked: DTypeLike | None, copy: bool) -> np.dtype[Any]:
    """Chooses the dtype of observations.

    Args:
      of_task: The task's own.
      asked: As for `make_vec`.
      copy: As for `make_vec`.

    Returns:
      float32 or float64; `of_task` if nothing was asked and observations are copies.

    Raises:
      InvalidArgument: Another dtype, or float64 without copies.
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
