"""Trains an agent of a Godot project: by the quickstart's search, or by PPO of Stable-Baselines3.

    python train.py build/examples/plate                 # the search: NumPy alone
    python train.py build/examples/flyer --by=ppo        # needs stable-baselines3

For games whose reward is at most 1 a step, such as the two examples. Prints the best possible return, the returns before
and after the training. With --watch viewers show some environments.
"""

import argparse
import importlib.util
import json
import math
import time
from pathlib import Path
from types import ModuleType

import numpy as np

import tandem
from tandem.examples.__main__ import programs

Frames = tuple[int, int] | None

def _quickstart() -> ModuleType:
    """Returns the quickstart's program, with larger perturbations: these policies have few numbers."""
    spec = importlib.util.spec_from_file_location("train_ars", programs()["train_ars"])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.NOISE, module.STEP_SIZE = 0.3, 0.3
    return module


def search(server: Path, frames: Frames, num_envs: int, steps: int, seed: int) -> tuple[float, float, float]:
    """Trains a linear policy; returns the untrained and the trained policy's return, and the best possible one."""
    train_ars = _quickstart()
    with (
        tandem.launch_engine(server=server, num_envs=num_envs, frames=frames) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        train_ars.EPISODE_STEPS = episode = json.loads(client.description)["max_episode_steps"]
        print(f"{client.task}: the best possible return is {episode}", flush=True)
        learning = train_ars.Search(client, seed)
        before = learning.evaluate()
        train_ars.train(learning, math.ceil(steps / (num_envs * episode)), math.inf)
        return before, learning.evaluate(), float(episode)


def ppo(server: Path, frames: Frames, num_envs: int, steps: int, seed: int) -> tuple[float, float, float]:
    """Trains a network; returns as `search`."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecMonitor

    torch.set_num_threads(1)
    envs = tandem.make_vec(num_envs=num_envs, frames=frames, engine=tandem.EngineOptions(server=server))
    episode = json.loads(envs.client.description)["max_episode_steps"]
    print(f"the best possible return is {episode}", flush=True)
    monitored = VecMonitor(envs.as_sb3())
    try:
        monitored.seed(seed)
        agent = PPO(
            "MlpPolicy",
            monitored,
            seed=seed,
            n_steps=128,
            batch_size=256,
            learning_rate=lambda left: 1e-3 * left,
            gamma=0.95,
            policy_kwargs={"log_std_init": -0.5, "net_arch": [32, 32]},
            device="cpu",
        )
        before = float(np.mean(evaluate_policy(agent, monitored, 2 * num_envs)[0]))
        agent.learn(steps)
        after = float(np.mean(evaluate_policy(agent, monitored, 2 * num_envs)[0]))
        return before, after, float(episode)
    finally:
        monitored.close()


def main() -> None:
    """Trains, and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path, help="folder of a Godot project with addons/tandem")
    parser.add_argument("--by", choices=["search", "ppo"], default="search")
    parser.add_argument("--num_envs", type=int, default=32, help="an even number")
    parser.add_argument("--steps", type=int, default=400_000, help="of all environments together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--watch", action="store_true", help="draw some environments for viewers")
    asked = parser.parse_args()
    server, frames = asked.project / "addons/tandem/run", (320, 240) if asked.watch else None
    started = time.monotonic()
    train = search if asked.by == "search" else ppo
    before, after, best = train(server, frames, asked.num_envs, asked.steps, asked.seed)
    secs = time.monotonic() - started
    print(f"return {before:.1f} before, {after:.1f} after: {after / best:.0%} of the best; {secs:.0f} s")


if __name__ == "__main__":
    main()
