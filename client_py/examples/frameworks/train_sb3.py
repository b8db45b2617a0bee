"""Trains by Stable-Baselines3's PPO, or SAC for continuous actions.

tools/torch_python client_py/examples/frameworks/train_sb3.py --help
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import VecMonitor

import tandem
from tandem.sb3 import Checkpoints, resumed
from tandem.telemetry.sb3 import Callback

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--algorithm", choices=("PPO", "SAC"), default="PPO")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--checkpoint", type=Path, metavar="FOLDER", help="save the training there")
parser.add_argument("--every", type=int, default=10_000, help="steps from one checkpoint to the next")
parser.add_argument("--resume", action="store_true", help="continue from the checkpoint, if there is one")
asked = parser.parse_args()
if asked.checkpoint and not asked.resume and (asked.checkpoint / "training").exists():
    parser.error(f"--checkpoint: expected a folder without a training, or --resume, found {asked.checkpoint}")

torch.set_num_threads(1)  # networks this small are slower on two, and a busy second core delays both
envs = VecMonitor(tandem.make_vec(asked.task, asked.num_envs, backend=asked.backend).as_sb3())
kind, options = PPO, {"n_steps": 64, "batch_size": 256, "n_epochs": 4}
if asked.algorithm == "SAC":
    kind, options = SAC, {"learning_starts": 1000, "buffer_size": 100_000}
callbacks: list[Any] = [Callback()]  # of a job of the daemon: episodes and numbers
model = None
if asked.checkpoint:
    asked.checkpoint.mkdir(parents=True, exist_ok=True)
    callbacks.append(Checkpoints(asked.checkpoint / "training", asked.every))
    model = resumed(asked.checkpoint / "training", kind, envs) if asked.resume else None
model = model or kind("MlpPolicy", envs, seed=asked.seed, device="cpu", **options)
model.learn(asked.steps - model.num_timesteps, callbacks, reset_num_timesteps=False)
envs.close()
print(f"return {np.mean([episode['r'] for episode in model.ep_info_buffer]):.1f}")
