"""Stable-Baselines3's PPO on Tandem's environments. Learns HalfCheetah-v5 in half a minute.

`make_envs` has the only line that names Tandem; the rest is what any program for Stable-Baselines3 has. Run it by
tools/torch_python.

Tandem carries observations and rewards as float32. DummyVecEnv's are rounded in the same way here (rewards it rounds by
itself), so that with one seed both learn from the same numbers and draw the same curve, bit for bit; --float64 leaves
the observations as they are.

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
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecMonitor, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

import tandem

LAST_EPISODES = 32  # make the final return
GAMMA = 0.99


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


def as_float32(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounds to what float32 can hold; same shape."""
    return values.astype(np.float32).astype(np.float64)


def make_envs(vector: str, task: str, num_envs: int, float64: bool) -> VecEnv:
    """Makes the environments.

    Args:
      vector: "tandem" or "sync".
      task: Gymnasium's name of the task.
      num_envs: How many.
      float64: Leave observations unrounded.

    Returns:
      The environments, in Stable-Baselines3's form.
    """
    if vector == "tandem":
        return tandem.make_vec(task, num_envs).as_sb3()

    def make_one() -> gymnasium.Env:
        env = gymnasium.make(task)
        return env if float64 else gymnasium.wrappers.TransformObservation(env, as_float32, env.observation_space)

    return DummyVecEnv([make_one] * num_envs)


class Stopwatch(VecEnvWrapper):
    """Counts the time in the environments below."""

    secs = 0.0

    def reset(self) -> NDArray[np.float64]:
        """Resets all environments."""
        return self.venv.reset()

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Begins a step."""
        self.started = time.monotonic()
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Ends it."""
        found = self.venv.step_wait()
        self.secs += time.monotonic() - self.started
        return found


class Observer(BaseCallback):
    """Draws the curve while the training runs; shows a live line."""

    def __init__(self, curve: Curve, envs: Stopwatch, started: float) -> None:
        """Notes what to fill in.

        Args:
          curve: The curve.
          envs: The environments.
          started: When the training did, by time.monotonic.
        """
        super().__init__()
        self.curve = curve
        self.envs = envs
        self.started = started
        self.shown = 0.0

    def _on_step(self) -> bool:
        self.curve.steps = self.num_timesteps
        for info in self.locals["infos"]:
            if "episode" in info:
                episode = self.num_timesteps, float(info["episode"]["r"]), time.monotonic() - self.started
                self.curve.episodes.append(episode)
        return True

    def _on_rollout_end(self) -> None:
        self.curve.env_secs = self.envs.secs
        self.curve.wall_secs = time.monotonic() - self.started
        live = sys.stdout.isatty()
        if live or self.curve.wall_secs > self.shown + 5:
            self.shown = self.curve.wall_secs
            print(f"\r{self.curve.line()}" if live else self.curve.line(), end="" if live else "\n", flush=True)


def train(envs: VecEnv, curve: Curve, started: float) -> None:
    """Trains until the steps are used up."""
    stopwatch = Stopwatch(envs)
    agent = PPO(
        "MlpPolicy",
        VecNormalize(VecMonitor(stopwatch), gamma=GAMMA),
        seed=curve.seed,
        n_steps=32,
        batch_size=512,
        n_epochs=10,
        learning_rate=lambda left: 1e-3 * left,
        gamma=GAMMA,
        gae_lambda=0.95,
        clip_range=0.2,
        policy_kwargs={"log_std_init": -0.5},
        device="cpu",
    )
    agent.learn(curve.asked_steps, callback=Observer(curve, stopwatch, started))
    curve.finished = True


def main() -> None:
    """Trains, and shows what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="HalfCheetah-v5")
    parser.add_argument("--vector", choices=("tandem", "sync"), default="tandem", help="sync is SB3's DummyVecEnv")
    parser.add_argument("--steps", type=int, default=300_000, help="of all environments together; whole rollouts")
    parser.add_argument("--num_envs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0, help="of the networks, the actions and the environments")
    parser.add_argument("--float64", action="store_true", help="leave observations unrounded")
    parser.add_argument("--out", type=Path, default=Path("ppo_sb3.json"), help="file for the curve")
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
    curve = Curve(
        script="ppo_sb3",
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

{curve.task}, PPO of Stable-Baselines3, {curve.vector}, {curve.num_envs} environments, seed {curve.seed}
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
