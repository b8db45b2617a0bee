"""PPO in the style of CleanRL, of whose scripts only the line that makes the environments changes."""

import argparse

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import tandem

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
asked = parser.parse_args()
torch.manual_seed(asked.seed)
torch.set_num_threads(1)
events = tandem.telemetry.track(algo="ppo")  # of a job of the daemon
envs = tandem.make_vec(asked.task, asked.num_envs, backend=asked.backend)  # was: gymnasium.vector.SyncVectorEnv([...])
envs = tandem.telemetry.RecordEpisodes(gymnasium.wrappers.vector.RecordEpisodeStatistics(envs), events)
size, count = int(np.prod(envs.single_observation_space.shape or ())), int(getattr(envs.single_action_space, "n"))  # noqa: B009
actor, critic = (nn.Sequential(nn.Linear(size, 64), nn.Tanh(), nn.Linear(64, outputs)) for outputs in (count, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
next_obs, returns = torch.as_tensor(envs.reset(seed=asked.seed)[0], dtype=torch.float32), []
next_done = np.zeros(asked.num_envs, bool)  # the step is a reset, which the policy does not choose
for update in range(asked.steps // (64 * asked.num_envs)):
    seen, chosen, rewards, ends, done = ([] for _ in range(5))  # type: ignore[var-annotated]
    for _ in range(64):
        with torch.no_grad():
            actions = Categorical(logits=actor(next_obs)).sample()
        seen, chosen, done = [*seen, next_obs], [*chosen, actions], [*done, next_done]
        obs, reward, terminated, truncated, infos = envs.step(actions.numpy())
        rewards, ends, next_done = [*rewards, reward], [*ends, terminated], terminated | truncated
        next_obs = torch.as_tensor(obs, dtype=torch.float32)
        if "episode" in infos:
            returns += infos["episode"]["r"][infos["_episode"]].tolist()
    obs, actions, used = torch.stack(seen), torch.stack(chosen), torch.as_tensor(~np.stack(done))
    with torch.no_grad():
        values = critic(torch.stack([*seen, next_obs]))[..., 0].numpy()
        log_probs = Categorical(logits=actor(obs)).log_prob(actions)[used]
    gains, following = np.zeros_like(values[1:]), 0.0
    for step, end in reversed(list(enumerate([*done[1:], next_done]))):
        surprise = rewards[step] + 0.99 * values[step + 1] * ~ends[step] - values[step]
        following = gains[step] = surprise + 0.99 * 0.95 * following * ~end
    gain, target = torch.as_tensor(gains)[used], torch.as_tensor(gains + values[:-1])[used]
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    for _ in range(4):
        policy = Categorical(logits=actor(obs[used]))
        ratio = (policy.log_prob(actions[used]) - log_probs).exp()
        loss = 0.5 * (critic(obs[used])[:, 0] - target).square().mean() - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        (loss - torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()).backward()
        optimizer.step()
    events.scalars((update + 1) * 64 * asked.num_envs, {"loss": loss, "entropy": policy.entropy().mean()})
envs.close()
print(f"return {np.mean(returns[-32:]):.1f}")
