"""Stable-Baselines3: environments by id, and advice for environments that it refuses."""

from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecMonitor

import tandem
from tandem.sb3 import Checkpoints, SharedMemoryVecEnv, resumed


@pytest.mark.parametrize("vec_env_cls", [None, SubprocVecEnv])
@pytest.mark.parametrize("task", ["CartPole-v1", "Hopper-v5"])
def test_ids_make_vector_environments(task: str, vec_env_cls: type | None) -> None:
    """The results equal those of Gymnasium's environments, in this process and in worker processes."""
    results = []
    for name in (f"tandem:tandem/{task}", task):  # the first part is the module to import in another process
        envs = make_vec_env(name, 2, seed=0, vec_env_cls=vec_env_cls)
        envs.action_space.seed(0)
        obs = [envs.reset()]
        for _ in range(60):
            obs.append(envs.step(np.stack([envs.action_space.sample() for _ in range(2)]))[0])
        results.append(np.stack(obs))
        envs.close()
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)


def test_ppo_trains_by_id() -> None:
    """The environment also renders images, as Stable-Baselines3 requests."""
    agent = PPO("MlpPolicy", "tandem/CartPole-v1", n_steps=64, batch_size=64, device="cpu")
    agent.learn(128)
    assert agent.get_env().render().shape == (400, 600, 3)
    agent.get_env().close()


def test_sb3s_checker_passes() -> None:
    """The checker applies to single environments."""
    env = gymnasium.make("tandem/Pendulum-v1")
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_a_bare_vector_environment_is_refused_with_advice() -> None:
    """Stable-Baselines3 accepts no vector environment of Gymnasium either."""
    envs = tandem.make_vec("CartPole-v1", 2)
    with pytest.raises(ValueError, match=r"SharedMemoryVectorEnv.*envs\.as_sb3\(\)"):
        PPO("MlpPolicy", envs)
    envs.close()


def test_a_wrapped_vector_environment_is_refused_with_advice() -> None:
    """Gymnasium's wrappers do not forward `as_sb3`."""
    envs: Any = gymnasium.wrappers.vector.RecordEpisodeStatistics(tandem.make_vec("CartPole-v1", 2))
    with pytest.raises(tandem.InvalidArgument, match="found a RecordEpisodeStatistics; .*VecMonitor"):
        SharedMemoryVecEnv(envs)
    envs.close()


def test_other_autoreset_modes_are_refused_with_advice() -> None:
    """SharedMemoryVecEnv itself refuses the mode; `as_sb3` chooses the right one."""
    envs = tandem.make_vec("CartPole-v1", 2)
    with pytest.raises(tandem.InvalidArgument, match=r"expected SAME_STEP.*envs\.as_sb3\(\)"):
        SharedMemoryVecEnv(envs)
    envs.close()


class _Masked(gymnasium.Env[Any, Any]):
    """Ends an episode with reward -1 at an action that its mask forbids."""

    observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def _observed(self) -> tuple[Any, dict[str, Any]]:
        self.forbidden = int(self.np_random.integers(3))
        return self.np_random.random(3, np.float32), {"action_mask": np.arange(3) != self.forbidden}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self._observed()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        wrong = action == self.forbidden
        obs, infos = self._observed()
        return obs, -1.0 if wrong else 1.0, bool(wrong), self.steps == 20, infos


def test_a_resumed_training_has_its_masks(tmp_path: Path) -> None:
    """They come with the states; other wrappers and other files are refused before anything changes."""
    path = tmp_path / "training"
    made = [VecMonitor(tandem.make_vec(_Masked, 4, num_workers=2).as_sb3()) for _ in range(2)]
    with closing(made[0]) as envs, closing(made[1]) as others:
        agent = MaskablePPO("MlpPolicy", envs, n_steps=16, batch_size=64, device="cpu")
        agent.learn(128, Checkpoints(path, 64))
        for refused in (others.venv, VecMonitor(others)):
            with pytest.raises(tandem.InvalidArgument, match="expected the wrappers"):
                resumed(path, MaskablePPO, refused)
        masks = resumed(path, MaskablePPO, others).env.env_method("action_masks")
        assert np.sum(masks, axis=1).tolist() == [2] * 4
        tandem.checkpoint.save(path)
        with pytest.raises(tandem.InvalidArgument, match="a file of Checkpoints"):
            resumed(path, MaskablePPO, others)


def test_maskable_ppo_takes_masks_from_infos() -> None:
    """No episode ends at a forbidden action, during training and with the trained policy."""
    envs = VecMonitor(tandem.make_vec(_Masked, 4, num_workers=2).as_sb3())
    agent = MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=64, device="cpu").learn(1_024)
    assert {episode["l"] for episode in agent.ep_info_buffer} == {20}
    obs = envs.reset()
    for _ in range(50):
        actions, _ = agent.predict(obs, action_masks=get_action_masks(envs))
        obs, rewards, *_ = envs.step(actions)
        assert rewards.tolist() == [1.0] * 4
    assert envs.env_method("action_masks", indices=[3, 0])[0].sum() == 2
    envs.close()
