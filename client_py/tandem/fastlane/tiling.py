"""`tile_frames`: several images in one."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.arguments.arrays import described
from tandem.errors import InvalidArgument


def grid_of(count: int) -> tuple[int, int]:
    """Returns rows and columns of the grid in which `tile_frames` lays images out."""
    rows = math.ceil(math.sqrt(count))
    return rows, math.ceil(count / rows)


def tile_frames(frames: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Lays N images out in a grid that is nearly square, row by row, and fills the rest with zeros.

    Args:
      frames: At least one; all of one shape [height, width, ...] and one dtype.

    Returns:
      [rows * height, cols * width, ...] with rows = ceil(sqrt(N)) and cols = ceil(N / rows); a copy.

    Raises:
      InvalidArgument: No frames, shapes or dtypes that differ, or fewer than two dimensions (also a ValueError).

    >>> import numpy as np
    >>> tile_frames([np.ones((2, 3, 3), np.uint8)] * 5).shape
    (6, 6, 3)
    """
    arrays = [np.asarray(frame) for frame in frames]
    if not arrays:
        raise InvalidArgument("frames: expected at least one, found none")
    first = arrays[0]
    for number, array in enumerate(arrays):
        if array.ndim < 2 or array.shape != first.shape or array.dtype != first.dtype:
            raise InvalidArgument(
                "frames: expected all of one shape [height, width, ...] and dtype, found "
                f"{list(first.shape)} {first.dtype} first and {list(array.shape)} {array.dtype} at {number}"
            )
    rows, cols = grid_of(len(arrays))
    height, width, *rest = first.shape
    grid = np.zeros((rows, height, cols, width, *rest), first.dtype)
    for number, array in enumerate(arrays):
        grid[number // cols, :, number % cols] = array
    return grid.reshape(rows * height, cols * width, *rest)


def checked_image(image: Any) -> NDArray[np.uint8]:
    """Returns what an environment's `render` has returned, if it is uint8[height, width, 3 or 4].

    Raises:
      InvalidArgument: It is something else.
    """
    if not (
        isinstance(image, np.ndarray)
        and image.dtype == np.uint8
        and image.ndim == 3
        and image.shape[2] in (3, 4)
        and 0 not in image.shape
    ):
        raise InvalidArgument(f"env.render(): expected uint8[height, width, 3 or 4], found {described_images(image)}")
    return image


def described_images(value: Any) -> str:
    """Returns a text for error messages: an array's shape and dtype, or the length of a sequence."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return f"{len(value)} of {type(value).__name__}"
    return described(value)
