"""Trains by Stable-Baselines3's PPO.

tools/torch_python client_py/examples/frameworks/train_sb3.py --help
"""

import argparse

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

import tandem
from tandem.telemetry.sb3 import Callback

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
asked = parser.parse_args()

torch.set_num_threads(1)  # networks this small are slower on two, and a busy second core delays both
envs = VecMonitor(tandem.make_vec(asked.task, asked.num_envs, backend=asked.backend).as_sb3())
model = PPO("MlpPolicy", envs, n_steps=64, batch_size=256, n_epochs=4, seed=asked.seed, device="cpu")
model.learn(asked.steps, callback=Callback())  # of a job of the daemon: episodes and numbers
envs.close()
print(f"return {np.mean([episode['r'] for episode in model.ep_info_buffer]):.1f}")
