"""PPO with torch in one file, in the style of CleanRL: trains HalfCheetah-v5 in half a minute.

Proximal policy optimisation (Schulman and others, 2017) for continuous and discrete actions, from vectors or, with
ALE/..., from images of Atari games. The environments are a Gymnasium vector environment with Gymnasium's wrappers; only
the calls of tandem.make_vec name Tandem. Run it by tools/torch_python.

Prints the steps, the mean return of the last episodes, and the time. Ctrl-C ends the training early. With --checkpoint
and --resume a killed training continues, digit for digit.
"""

import argparse
import functools
import importlib
import math
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray
from torch import nn
from torch.distributions import Categorical, Distribution, Independent, Normal

import tandem

NO_STATE = ("env", "func", "single_func")  # of a wrapper
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


def atari(task: str) -> gymnasium.Env:
    """Makes a game of Atari, whose observations are its last four images: uint8[4, 84, 84]."""
    gymnasium.register_envs(importlib.import_module("ale_py"))
    return FrameStackObservation(AtariPreprocessing(gymnasium.make(task, frameskip=1)), 4)


def make(task: str, num_envs: int, backend: str | None) -> VectorEnv:
    """Makes the environments of a task."""
    if task.startswith("ALE/"):
        return tandem.make_vec(functools.partial(atari, task), num_envs)
    return tandem.make_vec(task, num_envs, backend=backend)


def wrap(envs: VectorEnv) -> VectorEnv:
    """Adds statistics of episodes, and normalises observations and rewards; of images, the rewards' signs are left."""
    envs = wrappers.RecordEpisodeStatistics(envs)
    if len(envs.single_observation_space.shape or ()) > 1:
        return wrappers.TransformReward(envs, np.sign)
    envs = wrappers.NormalizeObservation(envs)
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


class Images(nn.Module):
    """The layers of Mnih and others (2015): of uint8[n, channels, 84, 84], float32[n, 512]."""

    def __init__(self, channels: int) -> None:
        """Makes three convolutions and a linear layer, with orthogonal weights."""
        super().__init__()
        layers: list[nn.Module] = []
        for size_in, size_out, side, stride in ((channels, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)):
            layers += [nn.Conv2d(size_in, size_out, side, stride), nn.ReLU()]
        layers += [nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU()]
        for layer in layers:
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.orthogonal_(layer.weight, math.sqrt(2))
                nn.init.zeros_(layer.bias)
        self.layers = nn.Sequential(*layers)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Computes the features."""
        return self.layers(images / 255.0)


class Agent(nn.Module):
    """A policy, and a value of observations. The deviation of continuous actions does not depend on the observation."""

    def __init__(self, obs_space: Box, act_space: Box | Discrete) -> None:
        """Starts from small actions, or from a nearly uniform choice."""
        super().__init__()
        from_images = len(obs_space.shape) > 1
        self.body = Images(obs_space.shape[0]) if from_images else nn.Identity()
        features = 512 if from_images else obs_space.shape[0]
        self.discrete = isinstance(act_space, Discrete)
        outputs = int(act_space.n) if isinstance(act_space, Discrete) else act_space.shape[0]
        self.actor = network(features, outputs, 0.01)
        self.critic = network(features, 1, 1.0)
        self.log_deviation = nn.Parameter(torch.full((0 if self.discrete else outputs,), -0.5))

    def policy(self, obs: torch.Tensor) -> Distribution:
        """Returns the distribution of actions: of [n, *obs], float32[n, act_size], or int64[n] if they are discrete."""
        outputs = self.actor(self.body(obs))
        if self.discrete:
            return Categorical(logits=outputs, validate_args=False)
        return Independent(Normal(outputs, self.log_deviation.exp(), validate_args=False), 1, validate_args=False)

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """Returns the expected return: of [n, *obs], float32[n]."""
        return self.critic(self.body(obs)).squeeze(-1)


class Trainer:
    """Proximal policy optimisation.

    Attributes:
      obs: [ROLLOUT + 1, num_envs, *obs], of a rollout, float32 or images' uint8; the last one follows its last step.
      actions: float32[ROLLOUT, num_envs, act_size], before they are clipped; int64[ROLLOUT, num_envs] if discrete.
      rewards: float32[ROLLOUT, num_envs].
      terminated: bool[ROLLOUT, num_envs]: the step reached a terminal state.
      done: bool[ROLLOUT + 1, num_envs]: the step before ended an episode, so that this step is a reset.
      returns: Of the episodes that have ended.
    """

    def __init__(self, envs: VectorEnv, seed: int) -> None:
        """Resets the environments."""
        self.envs = envs
        obs_space, act_space = envs.single_observation_space, envs.single_action_space
        if not isinstance(obs_space, Box) or not isinstance(act_space, Box | Discrete):
            sys.exit(f"--task: expected a Box to observe, and a Box or Discrete to act, found {obs_space}, {act_space}")
        self.limits = None if isinstance(act_space, Discrete) else (act_space.low, act_space.high)
        self.agent = Agent(obs_space, act_space)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
        obs_type = torch.uint8 if obs_space.dtype == np.uint8 else torch.float32
        self.obs = torch.empty((ROLLOUT + 1, envs.num_envs, *obs_space.shape), dtype=obs_type)
        act_type = torch.float32 if self.limits else torch.int64
        self.actions = torch.empty((ROLLOUT, envs.num_envs, *(act_space.shape or ())), dtype=act_type)
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
            actions = self.actions[at].numpy()
            if self.limits:
                actions = np.clip(actions, *self.limits)
            obs, self.rewards[at], self.terminated[at], truncated, infos = self.envs.step(actions)
            self.obs[at + 1] = torch.as_tensor(obs)
            self.done[at + 1] = self.terminated[at] | truncated
            if "episode" in infos:
                self.returns += infos["episode"]["r"][infos["_episode"]].tolist()

    def learn(self, learning_rate: float) -> None:
        """Improves policy and value by the rollout."""
        self.optimizer.param_groups[0]["lr"] = learning_rate
        with torch.no_grad():
            values = self.agent.value(self.obs.flatten(0, 1)).view(ROLLOUT + 1, -1)
            obs, actions = self.obs[:-1].flatten(0, 1), self.actions.flatten(0, 1)
            log_probs = self.agent.policy(obs).log_prob(actions)
        advantages = torch.as_tensor(self.advantages(values.numpy())).flatten()
        targets = advantages + values[:-1].flatten()

        steps = torch.as_tensor(np.flatnonzero(~self.done[:-1]))  # without resets, which the policy does not choose
        advantages = (advantages - advantages[steps].mean()) / (advantages[steps].std() + 1e-8)
        for _ in range(EPOCHS):
            for batch in steps[torch.randperm(len(steps))].split(MINIBATCH):
                policy = self.agent.policy(obs[batch])
                ratio = (policy.log_prob(actions[batch]) - log_probs[batch]).exp()
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


def wrappers_of(envs: VectorEnv) -> list[Any]:
    """Returns the wrappers, the outermost first."""
    found: list[Any] = [envs]
    while isinstance(found[-1], gymnasium.vector.VectorWrapper):
        found.append(found[-1].env)
    return found[:-1]


def save(file: Path, trainer: Trainer, iteration: int) -> None:
    """Saves the training after so many iterations, with running means and statistics of the wrappers."""
    kept = [
        {name: value for name, value in vars(each).items() if name not in NO_STATE and "space" not in name}
        for each in wrappers_of(trainer.envs)
    ]
    tandem.checkpoint.save(
        file,
        trainer.envs,
        agent=trainer.agent.state_dict(),
        optimizer=trainer.optimizer.state_dict(),
        last=(trainer.obs[ROLLOUT], trainer.done[ROLLOUT]),
        returns=trainer.returns,
        wrappers=kept,
        iteration=iteration,
    )


def resume(file: Path, trainer: Trainer) -> int:
    """Puts a saved training in place; returns the number of its iterations."""
    parts = tandem.checkpoint.load(file, trainer.envs)
    trainer.agent.load_state_dict(parts["agent"])
    trainer.optimizer.load_state_dict(parts["optimizer"])
    trainer.obs[ROLLOUT], trainer.done[ROLLOUT] = parts["last"]
    trainer.returns = parts["returns"]
    for wrapper, state in zip(wrappers_of(trainer.envs), parts["wrappers"], strict=True):
        vars(wrapper).update(state)
    return parts["iteration"]


def train(envs: VectorEnv, steps: int, seed: int, checkpoint: Path | None = None, every: int = 1) -> None:
    """Trains an agent, and prints its progress.

    The environments are those of `wrap`. The steps, of all environments together, are rounded up to whole rollouts.
    Continues from the file `checkpoint` if it exists, and saves to it after each `every` steps.
    """
    torch.set_num_threads(1)  # networks this small are slower on two, and the engine needs the other core
    torch.manual_seed(seed)
    trainer = Trainer(envs, seed)
    started = time.monotonic()
    iterations = math.ceil(steps / (ROLLOUT * envs.num_envs))
    begin = resume(checkpoint, trainer) if checkpoint and checkpoint.exists() else 0
    between = max(1, every // (ROLLOUT * envs.num_envs))
    for iteration in range(begin, iterations):
        trainer.collect()
        trainer.learn(LEARNING_RATE * (1 - iteration / iterations))
        done = (iteration + 1) * ROLLOUT * envs.num_envs
        mean = np.mean(trainer.returns[-LAST_EPISODES:]) if trainer.returns else math.nan
        print(f"{done:9,} steps   return {mean:8.1f}   {time.monotonic() - started:6.1f} s", end="\r", flush=True)
        if checkpoint and (iteration + 1) % between == 0:
            save(checkpoint, trainer, iteration + 1)
    print()


def main() -> None:
    """Trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="HalfCheetah-v5", help="one of Tandem, of Gymnasium, or of Atari (ALE/...)")
    parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
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
    envs = wrap(make(asked.task, asked.num_envs, asked.backend))
    try:
        if checkpoint:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
        train(envs, asked.steps, asked.seed, checkpoint, asked.every)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted")
    finally:
        envs.close()


if __name__ == "__main__":
    main()
