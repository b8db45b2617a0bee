"""RLlib: environments by id, made in a remote runner."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
from gymnasium import VectorizeMode
from ray.rllib.algorithms.ppo import PPOConfig

import tandem.ray
from tandem.testing.commanded_cart import arguments, commanding, commands_of


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Starts Ray on this machine only; its folder is removed at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
        yield
        ray.shutdown()


@pytest.mark.parametrize("mode", [VectorizeMode.SYNC, VectorizeMode.VECTOR_ENTRY_POINT])
def test_a_remote_runner_steps_environments_by_id(cluster: None, mode: VectorizeMode) -> None:
    """The runner makes single environments in Gymnasium's vector, or Tandem's vector environment."""
    config = (
        PPOConfig()
        .environment("tandem:tandem/CartPole-v1")  # the first part is the module to import in the runner
        .env_runners(
            num_env_runners=1, num_envs_per_env_runner=2, rollout_fragment_length=50, gym_env_vectorize_mode=mode
        )
        .training(train_batch_size_per_learner=100, minibatch_size=50, num_epochs=1)
        .learners(num_learners=0)
    )
    algorithm = config.build_algo()
    runners = algorithm.train()["env_runners"]
    assert runners["num_env_steps_sampled"] >= 100
    assert runners["num_episodes"] > 0
    algorithm.stop()


def test_the_contract_of_env_config_holds_in_a_remote_runner(cluster: None, tmp_path: Path) -> None:
    """For the first episode of each environment, and for those after it."""
    limit = tandem.TaskOptions(max_episode_steps=10)
    tandem.ray.register_env("carts", None, options=limit, **arguments(tmp_path))
    config = (
        PPOConfig()
        .environment("carts", env_config={"contract": [commanding(1), commanding(2)]})
        .env_runners(
            num_env_runners=1,
            num_envs_per_env_runner=2,
            rollout_fragment_length=25,
            gym_env_vectorize_mode=VectorizeMode.VECTOR_ENTRY_POINT,
        )
        .training(train_batch_size_per_learner=50, minibatch_size=50, num_epochs=1)
        .learners(num_learners=0)
    )
    algorithm = config.build_algo()
    assert algorithm.train()["env_runners"]["num_episodes"] >= 4
    (obs,) = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: runner.env.unwrapped.client.obs.copy(), local_env_runner=False
    )
    assert commands_of(obs).tolist() == [1, 2]
    algorithm.stop()
