"""PPO with torch in one file, after CleanRL's manner: teaches HalfCheetah-v5 to run in half a minute.

Proximal policy optimisation (Schulman and others, 2017) for continuous actions, over Gymnasium's vector environments
and wrappers as they are: `make_envs` has the only line that names Tandem. Run it by tools/torch_python.

Tandem carries observations and rewards as float32. SyncVectorEnv's are rounded in the same way here, so that with one
seed both learn from the same numbers and draw the same curve, bit for bit; --float64 leaves them as they are.

Ctrl-C ends the training early; what was found until then is shown and written.
"""

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import gymnasium
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
FIRST_LOG_DEVIATION = -0.5
LIMIT = 10.0  # of normalised observations and rewards
LAST_EPISODES = 32  # make the final return

Array = NDArray[np.float64]


@dataclass
class Curve:
    """What a training has shown so far; goes to the file as it is."""

    script: str
    task: str
    vector: str
    seed: int
    num_envs: int
    float64: bool
    asked_steps: int
    steps: int = 0
    wall_secs: float = 0
    env_secs: float = 0  # of them, within the environments and their wrappers
    finished: bool = False
    episodes: list[tuple[int, float, float]] = field(default_factory=list)  # steps so far, return, seconds so far

    def final_return(self) -> float:
        """Mean of the last episodes; NaN if there is none."""
        returns = [episode[1] for episode in self.episodes[-LAST_EPISODES:]]
        return sum(returns) / len(returns) if returns else math.nan

    def line(self) -> str:
        """Says how far the training is."""
        found = f"return {self.final_return():8.1f}" if self.episodes else "no episode yet "
        return f"{self.steps:9,} steps   {found}   {self.wall_secs:6.1f} s"

    def write(self, path: Path) -> None:
        """Writes it, whole or not at all."""
        scratch = path.with_name(path.name + ".new")
        scratch.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")
        scratch.replace(path)


def as_float32(values: Array) -> Array:
    """Rounds to what float32 can hold; same shape."""
    return values.astype(np.float32).astype(np.float64)


def clip(values: Array) -> Array:
    """Limits normalised values; same shape."""
    return np.clip(values, -LIMIT, LIMIT)


def make_envs(vector: str, task: str, num_envs: int, float64: bool) -> VectorEnv:
    """Makes the environments and what PPO wants around them: statistics, and normal observations and rewards.

    Args:
      vector: "tandem" or "sync".
      task: Gymnasium's name of the task; its observations and actions are boxes of one dimension.
      num_envs: How many.
      float64: Leave observations and rewards unrounded.

    Returns:
      The environments, which reset themselves one step after an episode's end (NEXT_STEP).
    """
    envs: VectorEnv
    if vector == "tandem":
        envs = tandem.make_vec(task, num_envs)
    else:
        envs = gymnasium.make_vec(task, num_envs, vectorization_mode="sync")
    if not float64:
        envs = wrappers.TransformReward(wrappers.TransformObservation(envs, as_float32), as_float32)
    envs = wrappers.RecordEpisodeStatistics(envs)
    envs = wrappers.TransformObservation(wrappers.NormalizeObservation(envs), clip)
    return wrappers.TransformReward(wrappers.NormalizeReward(envs, gamma=GAMMA), clip)


def network(inputs: int, outputs: int, last_gain: float) -> nn.Sequential:
    """Makes two hidden layers of 64; orthogonal weights, the last ones as large as `last_gain` says."""
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
        self.log_deviation = nn.Parameter(torch.full((act_size,), FIRST_LOG_DEVIATION))

    def policy(self, obs: torch.Tensor) -> Normal:
        """The distribution of actions: of float32[n, obs_size], float32[n, act_size]."""
        return Normal(self.actor(obs), self.log_deviation.exp(), validate_args=False)

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """The return to be expected: of float32[..., obs_size], float32[...]."""
        return self.critic(obs).squeeze(-1)


@dataclass
class Rollout:
    """ROLLOUT steps of all environments; `obs` has one more, which the last step led to."""

    obs: torch.Tensor  # float32[ROLLOUT + 1, num_envs, obs_size]
    actions: torch.Tensor  # float32[ROLLOUT, num_envs, act_size], before they were clipped
    rewards: NDArray[np.float32]  # float32[ROLLOUT, num_envs]
    terminated: NDArray[np.bool_]  # bool[ROLLOUT, num_envs]: the episode reached a terminal state
    done: NDArray[np.bool_]  # the same shape: it is over, for whatever reason
    resetting: NDArray[np.bool_]  # the same shape: the step was no step but the reset after an episode


class Trainer:
    """Proximal policy optimisation."""

    def __init__(self, envs: VectorEnv, curve: Curve) -> None:
        """Resets the environments."""
        self.envs = envs
        self.curve = curve
        obs_space, act_space = envs.single_observation_space, envs.single_action_space
        if not isinstance(obs_space, Box) or not isinstance(act_space, Box) or len(obs_space.shape) != 1:
            sys.exit(f"--task: expected continuous observations and actions, found {obs_space} and {act_space}")
        self.low, self.high = act_space.low, act_space.high
        self.agent = Agent(obs_space.shape[0], act_space.shape[0])
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
        self.obs = torch.as_tensor(envs.reset(seed=curve.seed)[0], dtype=torch.float32)
        self.done = np.zeros(envs.num_envs, dtype=np.bool_)

    def collect(self, started: float) -> Rollout:
        """Runs the policy for ROLLOUT steps.

        Args:
          started: When the training did, by time.monotonic.

        Returns:
          What happened.
        """
        shape = ROLLOUT, self.envs.num_envs
        rollout = Rollout(
            obs=torch.empty((ROLLOUT + 1, *self.obs.shape)),
            actions=torch.empty((*shape, len(self.low))),
            rewards=np.empty(shape, dtype=np.float32),
            terminated=np.empty(shape, dtype=np.bool_),
            done=np.empty(shape, dtype=np.bool_),
            resetting=np.empty(shape, dtype=np.bool_),
        )
        for at in range(ROLLOUT):
            rollout.obs[at] = self.obs
            rollout.resetting[at] = self.done
            with torch.no_grad():
                rollout.actions[at] = self.agent.policy(self.obs).sample()
            actions = np.clip(rollout.actions[at].numpy(), self.low, self.high)

            before = time.monotonic()
            obs, rollout.rewards[at], terminated, truncated, infos = self.envs.step(actions)
            now = time.monotonic()
            self.curve.env_secs += now - before
            self.curve.steps += self.envs.num_envs
            self.obs = torch.as_tensor(obs, dtype=torch.float32)
            rollout.terminated[at] = terminated
            rollout.done[at] = self.done = terminated | truncated
            if "episode" in infos:
                for value in infos["episode"]["r"][infos["_episode"]]:
                    self.curve.episodes.append((self.curve.steps, float(value), now - started))
        rollout.obs[ROLLOUT] = self.obs
        return rollout

    def learn(self, rollout: Rollout, learning_rate: float) -> None:
        """Improves policy and value by a rollout."""
        self.optimizer.param_groups[0]["lr"] = learning_rate
        with torch.no_grad():
            values = self.agent.value(rollout.obs)
            log_probs = self.agent.policy(rollout.obs[:-1]).log_prob(rollout.actions).sum(-1).flatten()
        advantages = torch.as_tensor(estimate_advantages(rollout, values.numpy())).flatten()
        targets = advantages + values[:-1].flatten()
        obs, actions = rollout.obs[:-1].flatten(0, 1), rollout.actions.flatten(0, 1)

        # A reset is nothing that the policy did.
        steps = torch.as_tensor(np.flatnonzero(~rollout.resetting))
        advantages = (advantages - advantages[steps].mean()) / (advantages[steps].std() + 1e-8)
        for _ in range(EPOCHS):
            for batch in steps[torch.randperm(len(steps))].split(MINIBATCH):
                policy = self.agent.policy(obs[batch])
                ratio = (policy.log_prob(actions[batch]).sum(-1) - log_probs[batch]).exp()
                gain = torch.minimum(
                    ratio * advantages[batch], ratio.clamp(1 - CLIP, 1 + CLIP) * advantages[batch]
                ).mean()
                value_loss = 0.5 * (self.agent.value(obs[batch]) - targets[batch]).square().mean()
                self.optimizer.zero_grad()
                (VALUE_WEIGHT * value_loss - gain).backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), MAX_GRADIENT)
                self.optimizer.step()


def estimate_advantages(rollout: Rollout, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Estimates how much better each action was than expected (generalised advantage estimation).

    With NEXT_STEP the observation after an episode's last step is that episode's own last one, and the step after it is
    the reset. So `values` has the right successor for every step, truncated ones too; only a terminal state is worth
    nothing. What comes out for a reset means nothing, and reaches no other step.

    Args:
      rollout: The steps.
      values: float32[ROLLOUT + 1, num_envs], of its observations.

    Returns:
      float32[ROLLOUT, num_envs].
    """
    advantages = np.zeros_like(rollout.rewards)
    following = np.zeros_like(rollout.rewards[0])
    for at in reversed(range(len(advantages))):
        surprise = rollout.rewards[at] + GAMMA * values[at + 1] * ~rollout.terminated[at] - values[at]
        following = surprise + GAMMA * LAMBDA * following * ~rollout.done[at]
        advantages[at] = following
    return advantages


def train(envs: VectorEnv, curve: Curve, started: float) -> None:
    """Trains until the steps are used up; shows a live line."""
    live = sys.stdout.isatty()
    trainer = Trainer(envs, curve)
    iterations = math.ceil(curve.asked_steps / (ROLLOUT * envs.num_envs))
    shown = 0.0
    for iteration in range(iterations):
        trainer.learn(trainer.collect(started), LEARNING_RATE * (1 - iteration / iterations))
        curve.wall_secs = time.monotonic() - started
        if live or curve.wall_secs > shown + 5:
            shown = curve.wall_secs
            print(f"\r{curve.line()}" if live else curve.line(), end="" if live else "\n", flush=True)
    curve.finished = True


def main() -> None:
    """Trains, and shows what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="HalfCheetah-v5", help="one with continuous actions")
    parser.add_argument("--vector", choices=("tandem", "sync"), default="tandem", help="what steps the environments")
    parser.add_argument("--steps", type=int, default=300_000, help="of all environments together; whole rollouts")
    parser.add_argument("--num_envs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0, help="of the networks, the actions and the environments")
    parser.add_argument("--float64", action="store_true", help="leave observations and rewards unrounded")
    parser.add_argument("--out", type=Path, default=Path("ppo_cleanrl.json"), help="file for the curve")
    arguments = parser.parse_args()
    if arguments.steps < 1 or arguments.num_envs < 1 or arguments.seed < 0:
        parser.error("--steps, --num_envs and --seed: expected positive numbers")
    try:  # now, rather than after the training
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.open("ab").close()
    except OSError as error:
        parser.error(f"--out: expected a file to write, found that {arguments.out} cannot be written: {error.strerror}")

    # Networks this small are slower on two threads than on one, and the engine has work for the other core.
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    curve = Curve(
        script="ppo_cleanrl",
        task=arguments.task,
        vector=arguments.vector,
        seed=arguments.seed,
        num_envs=arguments.num_envs,
        float64=arguments.float64,
        asked_steps=arguments.steps,
    )
    started = time.monotonic()
    envs = make_envs(curve.vector, curve.task, curve.num_envs, curve.float64)
    try:
        train(envs, curve, started)
    except KeyboardInterrupt:
        print("\ninterrupted: showing what was found so far", flush=True)
    finally:
        envs.close()
    curve.wall_secs = time.monotonic() - started
    curve.write(arguments.out)
    print(f"""

{curve.task}, PPO, {curve.vector}, {curve.num_envs} environments, seed {curve.seed}
  return, last {LAST_EPISODES} episodes  {curve.final_return():10.1f}
  steps                     {curve.steps:10,}
  wall time                 {curve.wall_secs:10.1f} s
  of it in environments     {curve.env_secs:10.1f} s
  curve                     {arguments.out}""")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted")
