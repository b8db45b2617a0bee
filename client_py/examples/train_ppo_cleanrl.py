"""PPO with torch in one file, in the style of CleanRL: trains HalfCheetah-v5 in half a minute.

Proximal policy optimisation (Schulman and others, 2017) for continuous actions. The environments are a Gymnasium vector
environment with Gymnasium's wrappers; only the call of tandem.make_vec names Tandem. Run it by tools/torch_python.

Prints the steps, the mean return of the last episodes, and the time. Ctrl-C ends the training early.
"""

import argparse
import math
import sys
import time

import numpy as np
import torch
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray
from torch import nn
from torch.distributions import Normal

import tandem

ROLLOUT = 32  # steps of each environment between two updates
EPOCHS = 10  # passes over a rollout
MINIBATCH = 512
LEARNING_RATE = 1e-3  # at first; falls linearly to 0
GAMMA = 0.99
LAMBDA = 0.95  # of the advantages (GAE)
CLIP = 0.2  # of the policy's ratio
VALUE_WEIGHT = 0.5
MAX_GRADIENT = 0.5
LIMIT = 10.0  # of normalised observations and rewards
LAST_EPISODES = 32  # whose mean is the return


def wrap(envs: VectorEnv) -> VectorEnv:
    """Adds statistics of episodes, and normalises observations and rewards."""
    envs = wrappers.NormalizeObservation(wrappers.RecordEpisodeStatistics(envs))
    envs = wrappers.TransformObservation(envs, lambda obs: np.clip(obs, -LIMIT, LIMIT))
    envs = wrappers.NormalizeReward(envs, gamma=GAMMA)
    return wrappers.TransformReward(envs, lambda rewards: np.clip(rewards, -LIMIT, LIMIT))


def network(inputs: int, outputs: int, last_gain: float) -> nn.Sequential:
    """Makes two hidden layers of 64, with orthogonal weights; `last_gain` scales those of the last layer."""
    layers: list[nn.Module] = []
    for size_in, size_out, gain in ((inputs, 64, math.sqrt(2)), (64, 64, math.sqrt(2)), (64, outputs, last_gain)):
        linear = nn.Linear(size_in, size_out)
        nn.init.orthogonal_(linear.weight, gain)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Agent(nn.Module):
    """A Gaussian policy whose deviation does not depend on the observation, and a value of observations."""

    def __init__(self, obs_size: int, act_size: int) -> None:
        """Starts from small actions."""
        super().__init__()
        self.actor = network(obs_size, act_size, 0.01)
        self.critic = network(obs_size, 1, 1.0)
        self.log_deviation = nn.Parameter(torch.full((act_size,), -0.5))

    def policy(self, obs: torch.Tensor) -> Normal:
        """Returns the distribution of actions: of float32[n, obs_size], float32[n, act_size]."""
        return Normal(self.actor(obs), self.log_deviation.exp(), validate_args=False)

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """Returns the expected return: of float32[..., obs_size], float32[...]."""
        return self.critic(obs).squeeze(-1)


class Trainer:
    """Proximal policy optimisation.

    Attributes:
      obs: float32[ROLLOUT + 1, num_envs, obs_size], of a rollout; the last one follows its last step.
      actions: float32[ROLLOUT, num_envs, act_size], before they are clipped.
      rewards: float32[ROLLOUT, num_envs].
      terminated: bool[ROLLOUT, num_envs]: the step reached a terminal state.
      done: bool[ROLLOUT + 1, num_envs]: the step before ended an episode, so that this step is a reset.
      returns: Of the episodes that have ended.
    """

    def __init__(self, envs: VectorEnv, seed: int) -> None:
        """Resets the environments."""
        self.envs = envs
        obs_space, act_space = envs.single_observation_space, envs.single_action_space
        if not isinstance(obs_space, Box) or not isinstance(act_space, Box) or len(obs_space.shape) != 1:
            sys.exit(f"--task: expected continuous observations and actions, found {obs_space} and {act_space}")
        self.low, self.high = act_space.low, act_space.high
        self.agent = Agent(obs_space.shape[0], act_space.shape[0])
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
        self.obs = torch.empty((ROLLOUT + 1, envs.num_envs, *obs_space.shape))
        self.actions = torch.empty((ROLLOUT, envs.num_envs, *act_space.shape))
        self.rewards = np.empty((ROLLOUT, envs.num_envs), dtype=np.float32)
        self.terminated = np.empty((ROLLOUT, envs.num_envs), dtype=np.bool_)
        self.done = np.zeros((ROLLOUT + 1, envs.num_envs), dtype=np.bool_)
        self.obs[ROLLOUT] = torch.as_tensor(envs.reset(seed=seed)[0])
        self.returns: list[float] = []

    def collect(self) -> None:
        """Runs the policy for ROLLOUT steps."""
        self.obs[0], self.done[0] = self.obs[ROLLOUT].clone(), self.done[ROLLOUT]
        for at in range(ROLLOUT):
            with torch.no_grad():
                self.actions[at] = self.agent.policy(self.obs[at]).sample()
            actions = np.clip(self.actions[at].numpy(), self.low, self.high)
            obs, self.rewards[at], self.terminated[at], truncated, infos = self.envs.step(actions)
            self.obs[at + 1] = torch.as_tensor(obs)
            self.done[at + 1] = self.terminated[at] | truncated
            if "episode" in infos:
                self.returns += infos["episode"]["r"][infos["_episode"]].tolist()

    def learn(self, learning_rate: float) -> None:
        """Improves policy and value by the rollout."""
        self.optimizer.param_groups[0]["lr"] = learning_rate
        with torch.no_grad():
            values = self.agent.value(self.obs)
            log_probs = self.agent.policy(self.obs[:-1]).log_prob(self.actions).sum(-1).flatten()
        advantages = torch.as_tensor(self.advantages(values.numpy())).flatten()
        targets = advantages + values[:-1].flatten()
        obs, actions = self.obs[:-1].flatten(0, 1), self.actions.flatten(0, 1)

        steps = torch.as_tensor(np.flatnonzero(~self.done[:-1]))  # without resets, which the policy does not choose
        advantages = (advantages - advantages[steps].mean()) / (advantages[steps].std() + 1e-8)
        for _ in range(EPOCHS):
            for batch in steps[torch.randperm(len(steps))].split(MINIBATCH):
                policy = self.agent.policy(obs[batch])
                ratio = (policy.log_prob(actions[batch]).sum(-1) - log_probs[batch]).exp()
                clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
                gain = torch.minimum(ratio * advantages[batch], clipped * advantages[batch]).mean()
                value_loss = 0.5 * (self.agent.value(obs[batch]) - targets[batch]).square().mean()
                self.optimizer.zero_grad()
                (VALUE_WEIGHT * value_loss - gain).backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), MAX_GRADIENT)
                self.optimizer.step()

    def advantages(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Estimates how much better each action was than expected (generalised advantage estimation).

        An episode's last step returns its last observation; the next step is the reset. So `values`, of `obs`, has the
        right successor of every step, truncated ones included. The value of a terminal state is 0.
        """
        advantages = np.zeros_like(self.rewards)
        following = np.zeros_like(self.rewards[0])
        for at in reversed(range(ROLLOUT)):
            surprise = self.rewards[at] + GAMMA * values[at + 1] * ~self.terminated[at] - values[at]
            following = surprise + GAMMA * LAMBDA * following * ~self.done[at + 1]
            advantages[at] = following
        return advantages


def train(envs: VectorEnv, steps: int, seed: int) -> None:
    """Trains an agent, and prints its progress.

    The environments are those of `wrap`. The steps, of all environments together, are rounded up to whole rollouts.
    """
    torch.set_num_threads(1)  # networks this small are slower on two, and the engine needs the other core
    torch.manual_seed(seed)
    trainer = Trainer(envs, seed)
    started = time.monotonic()
    iterations = math.ceil(steps / (ROLLOUT * envs.num_envs))
    for iteration in range(iterations):
        trainer.collect()
        trainer.learn(LEARNING_RATE * (1 - iteration / iterations))
        done = (iteration + 1) * ROLLOUT * envs.num_envs
        mean = np.mean(trainer.returns[-LAST_EPISODES:]) if trainer.returns else math.nan
        print(f"{done:9,} steps   return {mean:8.1f}   {time.monotonic() - started:6.1f} s", end="\r", flush=True)
    print()


def main() -> None:
    """Trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="HalfCheetah-v5", help="one with continuous actions")
    parser.add_argument("--steps", type=int, default=300_000, help="of all environments together; whole rollouts")
    parser.add_argument("--num_envs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0, help="of the networks, the actions and the environments")
    asked = parser.parse_args()
    if asked.steps < 1 or asked.num_envs < 1 or asked.seed < 0:
        parser.error("--steps, --num_envs and --seed: expected positive numbers")
    envs = wrap(tandem.make_vec(asked.task, asked.num_envs))
    try:
        train(envs, asked.steps, asked.seed)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted")
    finally:
        envs.close()


if __name__ == "__main__":
    main()
