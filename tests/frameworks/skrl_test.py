"""skrl: wrap_env of vector environments and of single environments."""

import gymnasium
import pytest
import torch
from skrl.envs.wrappers.torch import wrap_env

import tandem


@pytest.mark.parametrize("task", ["CartPole-v1", "HalfCheetah-v5"])
def test_vector_environments_are_wrapped_as_gymnasiums_are(task: str) -> None:
    """The tensors equal those of Gymnasium's environments, also after the ends of episodes."""
    results = []
    for envs in (tandem.make_vec(task, 3), gymnasium.make_vec(task, 3, vectorization_mode="sync")):
        envs.action_space.seed(0)
        wrapped = wrap_env(envs, verbose=False)
        assert wrapped.num_envs == 3 and wrapped.num_agents == 1
        result = [wrapped.reset()[0]]  # with skrl's default seed
        for _ in range(50):
            result += wrapped.step(torch.as_tensor(envs.action_space.sample()).reshape(3, -1))[:4]
        results.append(result)
        wrapped.close()
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_single_environment_is_wrapped() -> None:
    """The environment is made by its id."""
    wrapped = wrap_env(gymnasium.make("tandem/HalfCheetah-v5"), verbose=False)
    obs, _ = wrapped.reset()
    assert obs.shape == (1, 17)
    obs, reward, terminated, truncated, _ = wrapped.step(torch.zeros(1, 6))
    assert (obs.shape, reward.shape, terminated.shape, truncated.shape) == ((1, 17), (1, 1), (1, 1), (1, 1))
    wrapped.close()
