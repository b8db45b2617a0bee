"""Stable-Baselines3's PPO on Tandem's environments: trains HalfCheetah-v5 in half a minute.

Only the call of tandem.make_vec names Tandem; the rest is what any program for Stable-Baselines3 has. Run it by
tools/torch_python.

Prints the steps, the mean return of the last episodes, and the time. Ctrl-C ends the training early. With --checkpoint
and --resume a killed training continues, digit for digit.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

import tandem
from tandem.sb3 import Checkpoints, resumed

GAMMA = 0.99


class Progress(BaseCallback):
    """Prints a line after each rollout."""

    def _on_training_start(self) -> None:
        self.started = time.monotonic()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        returns = [episode["r"] for episode in self.model.ep_info_buffer]  # of the last hundred episodes
        mean = np.mean(returns) if returns else np.nan
        secs = time.monotonic() - self.started
        print(f"{self.num_timesteps:9,} steps   return {mean:8.1f}   {secs:6.1f} s", end="\r", flush=True)


def train(
    envs: VecEnv, steps: int, seed: int, callback: BaseCallback, checkpoint: Path | None = None, every: int = 1
) -> None:
    """Trains an agent for so many steps of all environments together, rounded up to whole rollouts.

    Continues from the file `checkpoint` if it exists, and saves to it after each `every` steps.
    """
    torch.set_num_threads(1)  # networks this small are slower on two, and the engine needs the other core
    envs = VecNormalize(VecMonitor(envs), gamma=GAMMA)
    agent = (checkpoint and resumed(checkpoint, PPO, envs)) or PPO(
        "MlpPolicy",
        envs,
        seed=seed,
        n_steps=32,
        batch_size=512,
        n_epochs=10,
        learning_rate=lambda left: 1e-3 * left,
        gamma=GAMMA,
        gae_lambda=0.95,
        clip_range=0.2,
        policy_kwargs={"log_std_init": -0.5},
        device="cpu",
    )
    callbacks = [callback, Checkpoints(checkpoint, every)] if checkpoint else callback
    agent.learn(steps - agent.num_timesteps, callback=callbacks, reset_num_timesteps=False)
    print()


def main() -> None:
    """Trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="HalfCheetah-v5")
    parser.add_argument("--server", help="program of an engine whose task to learn, such as a game of Godot")
    parser.add_argument("--steps", type=int, default=300_000, help="of all environments together; whole rollouts")
    parser.add_argument("--num_envs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0, help="of the networks, the actions and the environments")
    parser.add_argument("--checkpoint", type=Path, metavar="FOLDER", help="save the training there")
    parser.add_argument("--every", type=int, default=50_000, help="steps from one checkpoint to the next")
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint, if there is one")
    asked = parser.parse_args()
    if min(asked.steps, asked.num_envs, asked.every) < 1 or asked.seed < 0:
        parser.error("--steps, --num_envs, --every and --seed: expected positive numbers")
    checkpoint = asked.checkpoint and asked.checkpoint / "training"
    if checkpoint and checkpoint.exists() and not asked.resume:
        parser.error(f"--checkpoint: expected a folder without a training, or --resume, found {checkpoint}")
    task, engine = (None, tandem.EngineOptions(server=asked.server)) if asked.server else (asked.task, None)
    envs = tandem.make_vec(task, asked.num_envs, engine=engine).as_sb3()
    try:
        if checkpoint:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
        train(envs, asked.steps, asked.seed, Progress(), checkpoint, asked.every)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted")
    finally:
        envs.close()


if __name__ == "__main__":
    main()
