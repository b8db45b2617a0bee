"""Trains by Tianshou's PPO.

tools/torch_python client_py/examples/frameworks/train_tianshou.py --help
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

import tandem
from tandem.telemetry.tianshou import Logger
from tandem.tianshou import VectorEnv

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="continue from it, and save to it")
asked = parser.parse_args()

np.random.seed(asked.seed)  # Tianshou draws its batches by it
torch.manual_seed(asked.seed)
torch.set_num_threads(1)
envs = VectorEnv(tandem.make_vec(asked.task, asked.num_envs, backend=asked.backend, autoreset_mode="Disabled"))
envs.seed(asked.seed)
body = Net(state_shape=envs.observation_space[0].shape, hidden_sizes=[64, 64])
actor = DiscreteActor(preprocess_net=body, action_shape=int(envs.action_space[0].n))
policy = DiscreteActorPolicy(actor=actor, dist_fn=torch.distributions.Categorical, action_space=envs.action_space[0])
algorithm = PPO(
    policy=policy, critic=DiscreteCritic(preprocess_net=body), optim=AdamOptimizerFactory(lr=1e-3), ent_coef=0.01
)
parts = tandem.checkpoint.load(asked.checkpoint) if asked.checkpoint and asked.checkpoint.exists() else {"steps": 0}
if "algorithm" in parts:
    algorithm.load_state_dict(parts["algorithm"])


def save(epoch: int, steps: int, updates: int) -> str:
    """Saves after each epoch."""
    tandem.checkpoint.save(asked.checkpoint, algorithm=algorithm.state_dict(), steps=parts["steps"] + steps)
    return str(asked.checkpoint)


collector = Collector[CollectStats](algorithm, envs, VectorReplayBuffer(20_000, asked.num_envs))
result = algorithm.run_training(
    OnPolicyTrainerParams(
        training_collector=collector,
        max_epochs=max(1, (asked.steps - parts["steps"]) // 10_000),
        epoch_num_steps=min(asked.steps, 10_000),
        save_checkpoint_fn=save if asked.checkpoint else None,
        collection_step_num_env_steps=64 * asked.num_envs,
        update_step_num_repetitions=10,
        batch_size=256,
        logger=Logger(collector),  # of a job of the daemon
    )
)
collector.reset()
print(f"return {collector.collect(n_episode=32).returns_stat.mean:.1f}")
envs.close()
