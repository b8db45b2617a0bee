"""TorchRL: Tandem's vector environments by GymWrapper, single environments by id."""

import gymnasium
import pytest
import tensordict
import torch
from torchrl.envs import GymEnv, GymWrapper
from torchrl.envs.utils import check_env_specs

import tandem


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("task", ["CartPole-v1", "HalfCheetah-v5"])
def test_vector_environments_pass_torchrls_check(task: str, mode: str) -> None:
    """A rollout continues after the ends of episodes. TorchRL itself refuses NextStep."""
    env = GymWrapper(tandem.make_vec(task, 3, autoreset_mode=mode, max_episode_steps=20))
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


@pytest.mark.parametrize("task", ["CartPole-v1", "HalfCheetah-v5"])
def test_an_id_makes_a_single_environment(task: str) -> None:
    """TorchRL tries an option that no task has, and continues without it."""
    env = GymEnv(f"tandem/{task}")
    check_env_specs(env)
    rollout = env.rollout(10)
    assert isinstance(rollout, tensordict.TensorDictBase) and rollout.batch_size[0] > 1
    env.close()
