"""Trains by RLlib's PPO, in remote runners.

tools/torch_python client_py/examples/frameworks/train_rllib.py --help
"""

import argparse
import math
from pathlib import Path

import gymnasium
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig

import tandem
import tandem.ray
from tandem.telemetry.rllib import Callbacks

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16, help="of each runner")
parser.add_argument("--runners", type=int, default=1, help="processes of their own; 0: this process")
parser.add_argument("--batch", type=int, default=2048, help="steps between two updates")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="continue from it, and save to it")
asked = parser.parse_args()

torch.set_num_threads(1)
ray.init(num_cpus=max(2, asked.runners + 1), include_dashboard=False, log_to_driver=False)
tandem.ray.register_env("tandem", asked.task, backend=asked.backend)
config = (
    PPOConfig()
    .environment("tandem")
    .env_runners(
        num_env_runners=asked.runners,
        num_envs_per_env_runner=asked.num_envs,
        gym_env_vectorize_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT,
    )
    .training(train_batch_size_per_learner=asked.batch, minibatch_size=256, num_epochs=6, lr=1e-3)
    .learners(num_learners=0)
    .callbacks(Callbacks)  # of a job of the daemon
    .debugging(seed=asked.seed)
)
algorithm = config.build_algo()
if asked.checkpoint and asked.checkpoint.exists():
    algorithm.set_state(tandem.checkpoint.load(asked.checkpoint)["algorithm"])
steps, last_return = 0, math.nan
while steps < asked.steps:
    runners = algorithm.train()["env_runners"]
    steps = int(runners["num_env_steps_sampled_lifetime"])
    if not math.isnan(runners["episode_return_mean"]):  # it is where no episode ended
        last_return = runners["episode_return_mean"]
    if asked.checkpoint:
        tandem.checkpoint.save(asked.checkpoint, algorithm=algorithm.get_state(), steps=steps)
algorithm.stop()
ray.shutdown()
print(f"return {last_return:.1f}")
