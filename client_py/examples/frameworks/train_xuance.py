"""Trains by XuanCe's PPO.

tools/torch_python client_py/examples/frameworks/train_xuance.py --help
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from xuance import get_arguments
from xuance.torch.agents import PPO_Agent

import tandem
from tandem.telemetry.xuance import Callback
from tandem.xuance import VecEnv

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="continue from it, and save to it")
asked = parser.parse_args()
file = asked.checkpoint and asked.checkpoint.absolute()


def make(seed: int) -> VecEnv:
    """Makes the environments. XuanCe resets in the same step."""
    envs = tandem.make_vec(asked.task, asked.num_envs, backend=asked.backend, autoreset_mode="SameStep")
    return VecEnv(envs, seed=seed)


torch.set_num_threads(1)
options = {"parallels": asked.num_envs, "horizon_size": 64, "n_epochs": 4, "n_minibatch": 4, "learning_rate": 1e-3}
options |= {"seed": asked.seed, "device": "cpu", "render": False}
config = get_arguments("ppo", "classic_control", "CartPole-v1", parser_args=argparse.Namespace(**options))
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)  # XuanCe writes its logs there
    agent = PPO_Agent(config, make(asked.seed), callback=Callback())  # of a job of the daemon
    if file and file.exists():
        parts = tandem.checkpoint.load(file)
        agent.policy.load_state_dict(parts["policy"])
        agent.learner.optimizer.load_state_dict(parts["optimizer"])
        agent.obs_rms, agent.ret_rms = parts["norms"]
        agent.current_step = parts["steps"]
    while agent.current_step < asked.steps:
        agent.train(256)
        if file:
            parts = {"policy": agent.policy.state_dict(), "optimizer": agent.learner.optimizer.state_dict()}
            tandem.checkpoint.save(file, **parts, norms=(agent.obs_rms, agent.ret_rms), steps=agent.current_step)
    scores = agent.test(test_episodes=32, deterministic_policy=False, test_envs=make(asked.seed + asked.num_envs))
    agent.finish()
print(f"return {np.mean(scores):.1f}")
