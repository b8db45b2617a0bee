"""`shard_of_process`: a part of the environments and of the cores for each process of torchrun or Slurm.

    shard = shard_of_process(num_envs=1024)  # of all processes together
    envs = tandem.make_vec("Ant-v5", shard.num_envs, threads=len(shard.cores))
    envs.reset(seed=seed + shard.first_env)  # environment i of all processes has seed + i

Nothing of Tandem crosses machines then: the processes exchange gradients.
"""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from tandem.arguments import integer
from tandem.errors import InvalidArgument

__all__ = ["Shard", "shard_of_process"]

# Rank, processes, rank on this node, processes on this node: of torchrun, and of Slurm.
_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_SLURM = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE")


class Shard(NamedTuple):
    """The part of one process: its rank among `world_size` processes, and its environments from the index `first_env`.

    `cores` are this process's cores of its node, as `os.sched_setaffinity` takes them.
    """

    rank: int
    world_size: int
    num_envs: int
    first_env: int
    cores: tuple[int, ...]


def shard_of_process(num_envs: int, *, environ: Mapping[str, str] = os.environ) -> Shard:
    """Returns the part of this process: of the environments by its rank, of the node's cores by its rank on the node.

    The parts differ by at most one. Ranks are those of torchrun, or else of Slurm, or else of a single process.

    >>> shard_of_process(10, environ={"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"})[:4]
    (1, 4, 3, 2)

    Args:
      num_envs: Environments of all processes together.
      environ: The variables of the launcher.

    Raises:
      InvalidArgument: Fewer environments than processes, or invalid variables.
    """
    rank, world_size, local_rank, local_size = _ranks(environ)
    integer("num_envs", num_envs, world_size, after=", one for each process")
    first, end = (index * num_envs // world_size for index in (rank, rank + 1))
    cores = sorted(os.sched_getaffinity(0))
    own = cores[local_rank * len(cores) // local_size : (local_rank + 1) * len(cores) // local_size]
    # Of fewer cores than processes, some share one.
    return Shard(rank, world_size, end - first, first, tuple(own) or (cores[local_rank % len(cores)],))


def _ranks(environ: Mapping[str, str]) -> tuple[int, int, int, int]:
    names = next((names for names in (_TORCHRUN, _SLURM) if names[0] in environ), None)
    if names is None:
        return 0, 1, 0, 1
    rank, world_size, local_rank, local_size = (_number(name, environ.get(name, "")) for name in names)
    if not rank < world_size or not local_rank < local_size:
        found = {name: environ.get(name) for name in names}
        raise InvalidArgument(f"environ: expected ranks below the numbers of processes, found {found}")
    return rank, world_size, local_rank, local_size


def _number(name: str, text: str) -> int:
    # Slurm writes the tasks of each node such as "4(x2),3". The greatest is right for all nodes but those with fewer
    # tasks, whose last cores then stay unused.
    numbers = [int(number) for number in re.findall(r"(?:^|,)(\d+)(?:\(x\d+\))?", text)]
    if not numbers:
        raise InvalidArgument(f"{name}: expected a number, found {text!r}")
    return max(numbers)
