"""The command line and the output file of a training program for tools/learning."""

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass
class Curve:
    """The results of a training, and the fields of its file."""

    task: str
    backend: str | None
    vector: str
    seed: int
    num_envs: int
    float64: bool  # whether Gymnasium's values are not rounded
    asked_steps: int
    steps: int = 0
    wall_secs: float = 0
    env_secs: float = 0  # the part of wall_secs that was spent in the environments
    finished: bool = False
    episodes: list[tuple[int, float, float]] = field(default_factory=list)  # steps so far, return, seconds so far
    started: float = field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def stepping(self) -> Iterator[None]:
        """Adds the time of the block to the time in the environments."""
        before = time.monotonic()
        yield
        self.env_secs += time.monotonic() - before

    def add_episode(self, total_reward: float) -> None:
        """Adds an episode that has just ended."""
        self.episodes.append((self.steps, total_reward, time.monotonic() - self.started))


def as_float32(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounds values as Tandem's region does, so that equal seeds give equal curves; returns the same shape."""
    return values.astype(np.float32).astype(np.float64)


def run(train: Callable[[Curve], None]) -> None:
    """Runs a training program.

    Args:
      train: Makes the curve's environments, trains, and fills in the curve.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True)
    parser.add_argument("--backend", choices=("native", "python"))
    parser.add_argument("--vector", choices=("tandem", "sync"), required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--num_envs", type=int, default=64)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--float64", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    curve = Curve(asked.task, asked.backend, asked.vector, asked.seed, asked.num_envs, asked.float64, asked.steps)
    with contextlib.suppress(KeyboardInterrupt):
        train(curve)
        curve.finished = True
    curve.wall_secs = time.monotonic() - curve.started
    scratch = asked.out.with_name(asked.out.name + ".new")
    scratch.write_text(json.dumps(asdict(curve)) + "\n", encoding="utf-8")
    scratch.replace(asked.out)
