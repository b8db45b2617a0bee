"""Trains by TorchRL's PPO.

tools/torch_python client_py/examples/frameworks/train_torchrl.py --help
"""

import argparse
from pathlib import Path

import torch
from tensordict.nn import TensorDictModule
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.envs import DoubleToFloat, GymWrapper, RewardSum, TransformedEnv
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import tandem
from tandem.telemetry import RecordEpisodes, job_events
from tandem.telemetry.torchrl import Logger

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="continue from it, and save to it")
asked = parser.parse_args()

torch.manual_seed(asked.seed)
torch.set_num_threads(1)
# TorchRL refuses Gymnasium's default mode, NEXT_STEP.
vector = tandem.make_vec(asked.task, asked.num_envs, backend=asked.backend, autoreset_mode="SameStep")
size, count = vector.single_observation_space.shape[0], int(vector.single_action_space.n)
vector, logger = RecordEpisodes(vector, job_events()), Logger()  # of a job of the daemon
envs = TransformedEnv(GymWrapper(vector, categorical_action_encoding=True), RewardSum())
envs.append_transform(DoubleToFloat())
envs.set_seed(asked.seed)
body = TensorDictModule(MLP(size, count, num_cells=[64, 64]), in_keys=["observation"], out_keys=["logits"])
actor = ProbabilisticActor(
    body, in_keys=["logits"], distribution_class=Categorical, return_log_prob=True, spec=envs.action_spec
)
critic = ValueOperator(MLP(size, 1, num_cells=[64, 64]), in_keys=["observation"])
loss_of, gae = ClipPPOLoss(actor, critic, entropy_coeff=0.01), GAE(gamma=0.99, lmbda=0.95, value_network=critic)
optimizer = torch.optim.Adam(loss_of.parameters(), lr=1e-3)
returns: list[float] = []
begun, parts = 0, {"loss": loss_of, "gae": gae, "optimizer": optimizer}
if asked.checkpoint and asked.checkpoint.exists():
    saved = tandem.checkpoint.load(asked.checkpoint)
    begun = saved["steps"]
    for name, part in parts.items():
        part.load_state_dict(saved[name])
collector = Collector(envs, actor, frames_per_batch=64 * asked.num_envs, total_frames=asked.steps - begun)
for batch in collector:
    returns += batch["next", "episode_reward"][batch["next", "done"]].tolist()
    gae(batch)
    flat = batch.reshape(-1)
    for _ in range(4):
        for rows in torch.randperm(len(flat)).split(256):
            losses = loss_of(flat[rows])
            optimizer.zero_grad()
            (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
            optimizer.step()
    logger.log_metrics(losses.detach(), step=begun + collector._frames)
    if asked.checkpoint:
        states = {name: part.state_dict() for name, part in parts.items()}
        tandem.checkpoint.save(asked.checkpoint, **states, steps=begun + collector._frames)
collector.shutdown()
print(f"return {sum(returns[-32:]) / len(returns[-32:]):.1f}")
