"""CartPole-v1 by policy gradient in processes of torchrun or Slurm, which share gradients by gloo."""

import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel

import tandem
from tandem.sharding import shard_of_process

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--updates", type=int, default=60)
parser.add_argument("--num_envs", type=int, default=64, help="of all processes together")
asked = parser.parse_args()
shard = shard_of_process(asked.num_envs)
os.sched_setaffinity(0, shard.cores)  # the engine inherits it
torch.set_num_threads(1)
torch.manual_seed(0)  # equal networks; the actions differ, by the generator below
random = torch.Generator().manual_seed(shard.rank)
dist.init_process_group("gloo")
options = tandem.TaskOptions(dtype=np.float32)
envs = tandem.make_vec("CartPole-v1", shard.num_envs, threads=len(shard.cores), options=options)
obs = envs.reset(seed=shard.first_env)[0]
network = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
policy = DistributedDataParallel(network)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

for update in range(asked.updates):
    seen, chosen, rewards, done = [], [], [], [np.zeros(shard.num_envs, bool)]
    for _ in range(128):
        with torch.no_grad():
            chances = network(torch.from_numpy(obs)).softmax(-1)
        actions = torch.multinomial(chances, 1, generator=random)[:, 0]
        seen.append(obs)
        chosen.append(actions)
        obs, reward, terminations, truncations = envs.step(actions.numpy())[:4]
        rewards.append(reward)
        done.append(terminations | truncations)
    gains, following = np.zeros((128, shard.num_envs), np.float32), np.zeros(shard.num_envs, np.float32)
    for step in reversed(range(128)):
        following = gains[step] = rewards[step] + 0.99 * following * ~done[step + 1]
    used = torch.from_numpy(~np.stack(done[:-1]))  # the others are resets
    gain = torch.from_numpy(gains)
    gain = (gain - gain[used].mean()) / gain[used].std()
    log_probs = Categorical(logits=policy(torch.from_numpy(np.stack(seen)))).log_prob(torch.stack(chosen))
    optimizer.zero_grad()
    (-(log_probs * gain)[used].mean()).backward()  # DistributedDataParallel averages the gradients
    optimizer.step()
    ends = torch.tensor(float(np.sum(done[1:])))
    dist.all_reduce(ends)
    if shard.rank == 0:
        length = asked.num_envs * 128 / max(ends.item(), 1)
        print(f"{update}: {length:.1f} steps for each end of an episode", flush=True)
envs.close()
dist.destroy_process_group()
