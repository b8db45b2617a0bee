"""`EngineArrays`: the arrays of all environments, which an engine reads and writes."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tandem._native import CudaArray

Fields = Mapping[tuple[str, str], Any]


class CudaArrays(NamedTuple):
    """Arrays of an engine in the memory of a GPU; the host owns them, and the engine writes into them.

    Each is a `tandem._native.CudaArray`, which `torch.from_dlpack`, `warp.array` (by the CUDA array interface), CuPy
    and JAX take without a copy. The memory is freed when neither the host nor an array has it any more. An engine whose
    results are in memory of its own framework's pool copies them, on the device: CUDA IPC exports no memory of pools.

    Attributes:
      obs: Observations, as those of `EngineArrays`.
      rewards: float32[num_envs], of which `step` writes the rows of its environments. The rewards of the region must be
        written, too.
      images: uint8[num_envs, height, width, 3], RGB; None without `Engine.cuda_image_size`.
      write_on: Called by `reset` or `step` with the number of the CUDA stream on which the engine writes from then on,
        such as `torch.cuda.current_stream().cuda_stream`. Default: 0, the legacy default stream, which waits for all
        blocking streams. The stream must exist as long as the engine serves. When the engine's method returns, its work
        on this stream need not be complete: a client's stream waits for it.
    """

    obs: Any
    rewards: CudaArray
    images: CudaArray | None
    write_on: Callable[[int], None]


class EngineArrays(NamedTuple):
    """Views of the region's memory, one row for each environment; the engine writes results into them.

    A `Box` of one dimension and dtype float32 is one array, float32[num_envs, size]. Any other space is a tree of
    arrays, [num_envs, *shape] of the part's own dtype:

    | space | value |
    |---|---|
    | Box, Discrete, MultiDiscrete, MultiBinary | the array |
    | Dict | a dict of its items' values |
    | Tuple | a tuple of its items' values |
    | Text | uint32[num_envs, 1 + max_length]: the number of characters, then their code points |
    | OneOf | a tuple: int64[num_envs], which alternative; then the values of every alternative |

    The client can write to this memory, too. So actions may hold any value, NaN included: clip them. An engine that
    needs a value later keeps a copy of its own.

    Attributes:
      obs: Observations, as above.
      actions: Actions, as above; read-only.
      rewards: float32[num_envs].
      terminateds: bool[num_envs], whether the episode ended in a terminal state.
      truncateds: bool[num_envs], whether the episode was cut short, as by a time limit.
      infos: A dict of the infos of `Engine.info_sizes`: float64[num_envs], or float64[num_envs, size].
      images: Of `Engine.observation_image_size`: uint8[num_envs, height, width, 3], the top row first. None without it,
        and in steps and resets that no client requested.
      cuda: Arrays on a GPU; None without `Engine.cuda_device`, or without a driver.
    """

    obs: Any
    actions: Any
    rewards: NDArray[np.float32]
    terminateds: NDArray[np.bool_]
    truncateds: NDArray[np.bool_]
    infos: dict[str, NDArray[np.float64]]
    images: NDArray[np.uint8] | None = None
    cuda: CudaArrays | None = None


def is_rows(space: spaces.Space[Any]) -> bool:
    """Returns whether the values of a space are the region's float32 rows.

    >>> is_rows(spaces.Box(-1, 1, (3,))), is_rows(spaces.Box(0, 255, (3,), np.uint8)), is_rows(spaces.Discrete(3))
    (True, False, False)
    """
    return isinstance(space, spaces.Box) and space.dtype == np.float32 and len(space.shape) == 1 and space.shape[0] > 0


def tree(space: spaces.Space[Any], role: str, fields: Fields, num_envs: int, path: str = "") -> Any:
    """Returns the arrays of a space's fields, as `EngineArrays` has them.

    `role` is "obs" or "action"; `fields` are [num_envs, *shape] by role and path; `path` is that of the part, which
    docs/protocol.md defines.
    """
    if isinstance(space, spaces.Dict):
        return {key: tree(item, role, fields, num_envs, _below(path, key)) for key, item in space.spaces.items()}
    if isinstance(space, spaces.Tuple | spaces.OneOf):
        items = tuple(tree(item, role, fields, num_envs, f"{path}/{at}") for at, item in enumerate(space.spaces))
        return (fields[role, f"{path}/index"], *items) if isinstance(space, spaces.OneOf) else items
    if (role, path) in fields:
        return fields[role, path]
    return np.zeros((num_envs, *(space.shape or ())), space.dtype)  # of a shape without elements


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def info_columns(sizes: Mapping[str, int | None], infos: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Returns the columns of each info in the region's array.

    >>> sorted(info_columns({"x": None, "forces": 2}, np.zeros((4, 3)))["forces"].shape)
    [2, 4]
    """
    columns = {}
    at = 0
    for name, size in sizes.items():
        columns[name] = infos[:, at] if size is None else infos[:, at : at + size]
        at += 1 if size is None else size
    return columns
