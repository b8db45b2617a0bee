"""TorchRL: Tandem's vector environments by GymWrapper, also in collectors on Ray; single environments by id."""

import contextlib
import tempfile
import time
from pathlib import Path

import gymnasium
import pytest
import ray
import tensordict
import torch
from torchrl.collectors.distributed import RayCollector
from torchrl.envs import GymEnv, GymWrapper
from torchrl.envs.utils import check_env_specs

import tandem
from tandem.testing.commanded_cart import arguments, commanding, commands_of


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_contracts_by_the_options_of_a_reset(tmp_path: Path, mode: str) -> None:
    """GymWrapper passes them on; later episodes keep the contracts."""
    limit = tandem.TaskOptions(max_episode_steps=3)
    env = GymWrapper(tandem.make_vec(num_envs=2, autoreset_mode=mode, options=limit, **arguments(tmp_path)))
    first = env.reset(options={"contract": [commanding(1), commanding(2)]})
    assert commands_of(first["observation"]).tolist() == [1, 2]
    steps = env.rollout(8, tensordict=first, auto_reset=False, break_when_any_done=False)
    assert steps["next", "done"].sum() == 4
    assert commands_of(steps["observation"]).tolist() == [[1] * 8, [2] * 8]
    env.close()


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("task", ["CartPole-v1", "HalfCheetah-v5"])
def test_vector_environments_pass_torchrls_check(task: str, mode: str) -> None:
    """A rollout continues after the ends of episodes. TorchRL itself refuses NextStep."""
    env = GymWrapper(tandem.make_vec(task, 3, autoreset_mode=mode, options=tandem.TaskOptions(max_episode_steps=20)))
    check_env_specs(env)
    rollout = env.rollout(60, break_when_any_done=False)
    assert rollout.batch_size == torch.Size([3, 60])
    assert rollout["next", "done"].sum() >= 3
    env.close()


def test_vector_environments_equal_gymnasiums() -> None:
    """Observations, rewards and ends are equal for the same actions with the same wrapper."""
    rollouts = []
    for make in (_ours, _theirs):
        env = GymWrapper(make())
        env.set_seed(0)
        torch.manual_seed(0)
        rollouts.append(env.rollout(60, break_when_any_done=False))
        env.close()
    found, expected = rollouts
    for key in ("observation", ("next", "observation"), ("next", "reward"), ("next", "done")):
        torch.testing.assert_close(found[key].double(), expected[key].double(), rtol=1e-5, atol=1e-6)


def _ours() -> gymnasium.vector.VectorEnv:
    return tandem.make_vec("Hopper-v5", 3, autoreset_mode="SameStep")


def _theirs() -> gymnasium.vector.VectorEnv:
    mode = {"autoreset_mode": "SameStep"}
    return gymnasium.make_vec("Hopper-v5", 3, vectorization_mode="sync", vector_kwargs=mode)


def _regions() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("tandem-[0-9]*")}


def _engines(names: set[str]) -> list[str]:
    """Returns the living engines of these regions."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [name for name in names if name in path.read_text("utf-8", errors="replace")]
    return found


def test_collectors_on_ray_have_engines_of_their_own() -> None:
    """Each collects its share of a batch. TorchRL kills them at the end; the next engine removes what they left."""
    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryDirectory() as names,  # a file for each engine, named as its region
        pytest.MonkeyPatch.context() as patch,
    ):

        def make_envs() -> GymWrapper:  # of this function, since workers cannot import this file
            envs = tandem.make_vec("CartPole-v1", 3, autoreset_mode="SameStep")
            Path(names, envs.client.name).touch()
            return GymWrapper(envs)

        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
        collector = RayCollector(
            [make_envs] * 2, frames_per_batch=120, total_frames=360, sync=True, remote_configs={"num_cpus": 1}
        )
        collector.set_seed(0)
        shapes = []
        for batch in collector:
            shapes.append(batch.shape)
            engines = {path.name for path in Path(names).iterdir()} & _regions()
        ray.shutdown()
    assert shapes == [torch.Size([2, 3, 20])] * 3
    assert len(engines) == 2, engines
    assert not torch.equal(batch["observation"][0], batch["observation"][1])
    end = time.monotonic() + 30
    while _engines(engines) and time.monotonic() < end:
        time.sleep(0.1)
    assert not _engines(engines)
    tandem.make_vec("CartPole-v1", 1).close()
    assert not engines & _regions()


@pytest.mark.parametrize("task", ["CartPole-v1", "HalfCheetah-v5"])
def test_an_id_makes_a_single_environment(task: str) -> None:
    """TorchRL tries an option that no task has, and continues without it."""
    env = GymEnv(f"tandem/{task}")
    check_env_specs(env)
    rollout = env.rollout(10)
    assert isinstance(rollout, tensordict.TensorDictBase) and rollout.batch_size[0] > 1
    env.close()
