"""`shard_of_process`: the parts of all processes together are the whole."""

import os

import pytest

import tandem
from tandem.sharding import Shard, shard_of_process


def _torchrun(rank: int, size: int, local_rank: int, local_size: int) -> dict[str, str]:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    return dict(zip(names, map(str, (rank, size, local_rank, local_size)), strict=True))


@pytest.mark.parametrize(("num_envs", "size"), [(8, 1), (8, 8), (10, 3), (1024, 7)])
def test_each_environment_has_one_process(num_envs: int, size: int) -> None:
    """The parts differ by at most one, and touch."""
    shards = [shard_of_process(num_envs, environ=_torchrun(rank, size, 0, 1)) for rank in range(size)]
    envs = [shard.first_env + index for shard in shards for index in range(shard.num_envs)]
    assert envs == list(range(num_envs))
    sizes = [shard.num_envs for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_processes_of_a_node_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their rank on the node; with more processes than cores, each has one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3, 5, 7, 8})
    cores = [shard_of_process(4, environ=_torchrun(rank + 2, 4, rank, 2)).cores for rank in range(2)]
    assert cores == [(2, 3), (5, 7, 8)]
    cores = [shard_of_process(7, environ=_torchrun(rank, 7, rank, 7)).cores for rank in range(7)]
    assert all(len(each) == 1 for each in cores) and {core for each in cores for core in each} == {2, 3, 5, 7, 8}


def test_ranks_of_slurm() -> None:
    """Torchrun's come first; without either there is one process."""
    slurm = {"SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_LOCALID": "1", "SLURM_TASKS_PER_NODE": "2(x3)"}
    assert shard_of_process(12, environ=slurm)[:4] == (5, 6, 2, 10)
    assert shard_of_process(12, environ=slurm | _torchrun(0, 2, 0, 2))[:4] == (0, 2, 6, 0)
    assert shard_of_process(12, environ={}) == Shard(0, 1, 12, 0, tuple(sorted(os.sched_getaffinity(0))))


@pytest.mark.parametrize("environ", [{"RANK": "1"}, _torchrun(2, 2, 0, 1), _torchrun(0, 4, 3, 2)])
def test_invalid_variables_are_refused(environ: dict[str, str]) -> None:
    """So are fewer environments than processes."""
    with pytest.raises(tandem.InvalidArgument):
        shard_of_process(8, environ=environ)
    with pytest.raises(tandem.InvalidArgument, match="num_envs"):
        shard_of_process(3, environ=_torchrun(0, 4, 0, 4))
