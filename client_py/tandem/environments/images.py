"""`separate`: the image of each environment in a frame that an engine drew."""

import json

import numpy as np
from numpy.typing import NDArray

from tandem.errors import EngineFailed, LayoutMismatch, Unsupported


def separate(frame: NDArray[np.uint8], metadata: bytes, num_envs: int) -> tuple[NDArray[np.uint8], ...]:
    """Returns the image of each environment, uint8[height, width, 3], from a frame of all environments.

    `frame` is uint8[rows * height, columns * width, 3]; `metadata` JSON with "envs", "rows", "columns" and, if drawing
    failed, "error".

    Raises:
      Unsupported: The engine's machine cannot draw.
      EngineFailed: Drawing failed.
      LayoutMismatch: The metadata is invalid, or the frame does not show every environment.
    """
    try:
        told = json.loads(metadata)
        error, text = told.get("error"), str(told.get("error_text"))
        envs, rows, columns = told["envs"], int(told["rows"]), int(told["columns"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as wrong:
        raise LayoutMismatch(f"frame: expected an engine's metadata, found {metadata[:100]!r} ({wrong})") from wrong
    if error is not None:
        raise (Unsupported if error == Unsupported.__name__ else EngineFailed)(text)
    if envs != list(range(num_envs)) or rows < 1 or columns < 1 or rows * columns < num_envs:
        raise LayoutMismatch(
            f"frame: expected images of environments 0 .. {num_envs - 1}, found {metadata[:100]!r}; start the engine "
            "with frames=tandem.FrameOptions(size, envs='all')"
        )
    if frame.shape[0] % rows or frame.shape[1] % columns:
        raise LayoutMismatch(f"frame: expected images of one size, found {metadata[:100]!r} of {list(frame.shape)}")
    height, width = frame.shape[0] // rows, frame.shape[1] // columns
    corners = (divmod(place, columns) for place in range(num_envs))
    return tuple(
        np.ascontiguousarray(frame[row * height : (row + 1) * height, column * width : (column + 1) * width])
        for row, column in corners
    )
