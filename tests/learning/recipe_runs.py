"""Runs recipes of client_py/examples/frameworks in processes of their own, and reads what watched_segments.py found."""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

_ROOT = Path(__file__).parents[2]
RECIPES = _ROOT / "client_py" / "examples" / "frameworks"
_SEGMENTS = Path(__file__).with_name("watched_segments.py")
FRAMEWORKS = ("sb3", "sbx", "cleanrl", "torchrl", "tianshou", "rllib", "xuance")
HORIZON = 64  # steps of each environment between two updates, in each recipe


@dataclass(frozen=True)
class Asked:
    """What to run.

    Attributes:
      framework: One of FRAMEWORKS.
      seed: Of the recipe.
      steps: Of all environments together.
      num_envs: Number of environments.
      conditions: Of the segments: "off", "published", "watched"; none: no segments.
      environments: "native", "python": backends of Tandem; "own": the framework's own.
      options: More arguments of `tandem.make_vec`.
      cores: That of the trainer and the steps, that of frames and viewer; none: left to the system.
    """

    framework: str
    seed: int
    steps: int
    num_envs: int = 16
    conditions: tuple[str, ...] = ()
    environments: str = "native"
    options: dict[str, Any] | None = None
    cores: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    """What a training left.

    Attributes:
      segments: One for each: condition, wall seconds, CPU seconds of the trainer, of the engine, wall seconds in
        Tandem's calls.
      digest: Of all rewards and ends of episodes.
      frames: The number that the viewer read.
      last_return: The recipe's last line: the mean return of the last episodes.
    """

    segments: list[tuple[str, float, float, float, float]]
    digest: str
    frames: int
    last_return: float


def train(asked: Asked) -> Found:
    """Trains once.

    Raises:
      RuntimeError: The training failed; the text has its last output.
    """
    arguments = ["--steps", str(asked.steps), "--num_envs", str(asked.num_envs), "--seed", str(asked.seed)]
    if asked.environments != "own":
        arguments += ["--backend", asked.environments]
    if asked.framework == "rllib":
        arguments += ["--runners", "0", "--batch", str(HORIZON * asked.num_envs)]
    pinned = ["taskset", "--cpu-list", str(asked.cores[0])] if asked.cores else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        fields = {**asdict(asked), "options": asked.options or {}}
        segments = asked.steps // (HORIZON * asked.num_envs)  # some recipes evaluate after the training
        fields |= {"segments": segments, "updates": HORIZON, "out": str(out), "arguments": arguments}
        recipe = str(RECIPES / f"train_{asked.framework}.py")
        ran = subprocess.run(
            [*pinned, sys.executable, str(_SEGMENTS), recipe, json.dumps(fields)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{_ROOT}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        last = re.search(r"^return ([\d.]+)$", ran.stdout, re.MULTILINE)
        if ran.returncode or not last:
            raise RuntimeError(f"{asked}: the training failed:\n{ran.stdout[-4000:]}")
        return Found(**json.loads(out.read_text()), last_return=float(last[1]))


def random_return() -> float:
    """Returns the 99th percentile of the returns of CartPole-v1 with random actions."""
    env, returns = gymnasium.make("CartPole-v1"), []
    env.action_space.seed(0)
    for episode in range(1000):
        env.reset(seed=episode)
        done, total = False, 0.0
        while not done:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.percentile(returns, 99))
