"""Measures what watching costs a training by each framework, and tests that the cost is below a margin.

Runs recipes of client_py/examples/frameworks on Tandem's CartPole-v1. In each training a viewer that reads 60 frames a
second is switched on and off between updates, in random order within each pair of segments. Two one-sided tests (TOST)
of the mean logarithm of the pairs' ratios, without the most extreme tenth on each side (Yuen's trimmed means).
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

_ROOT = Path(__file__).parents[2]
_RECIPES = _ROOT / "client_py" / "examples" / "frameworks"
_SEGMENTS = Path(__file__).with_name("watched_segments.py")
_TRIMMED = 0.1  # on each side
_ENVS, _UPDATES = 16, 64  # 1,024 steps: a rollout and its update in each recipe
FRAMEWORKS = {
    "sb3": [],
    "sbx": [],
    "cleanrl": [],
    "torchrl": [],
    "tianshou": [],
    "rllib": ["--runners", "0", "--batch", "1024"],
    "xuance": [],
}


@dataclass(frozen=True)
class Interval:
    """The ratio watched / unwatched of a time.

    Attributes:
      mean: Of the pairs.
      low: The lower end of the interval of 90 %, by which TOST decides at 5 %.
      high: The upper end.
    """

    mean: float
    low: float
    high: float

    def within(self, margin: float) -> bool:
        """Returns whether the test says that the ratio is 1, but for the margin."""
        return 1 - margin < self.low and self.high < 1 + margin


def interval(ratios: Sequence[float]) -> Interval:
    """Returns the interval of the ratios' trimmed mean."""
    logs = np.sort(np.log(np.asarray(ratios)))
    count, cut = len(logs), int(_TRIMMED * len(logs))
    kept = logs[cut : count - cut]
    winsorized = np.clip(logs, kept[0], kept[-1])
    mean = float(kept.mean())
    error = float(winsorized.std(ddof=1)) / ((1 - 2 * _TRIMMED) * math.sqrt(count))
    reach = float(stats.t.ppf(0.95, len(kept) - 1)) * error
    return Interval(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))


def pairs_of(segments: Sequence[Sequence[float]], clock: int) -> list[float]:
    """Returns watched / unwatched of each pair of neighbours, of one clock, without the first pair, which warms up."""
    found = []
    for first, second in zip(segments[2::2], segments[3::2], strict=False):
        watched, unwatched = (first, second) if first[0] else (second, first)
        found.append(watched[clock] / unwatched[clock])
    return found


def train(framework: str, seed: int, steps: int, pairs: int, python: str = sys.executable) -> dict[str, Any]:
    """Runs a recipe in a process of its own; returns what watched_segments.py wrote."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        arguments = ["--steps", str(steps), "--num_envs", str(_ENVS), "--seed", str(seed), *FRAMEWORKS[framework]]
        asked = {"updates": _UPDATES, "pairs": pairs, "out": str(out), "arguments": arguments}
        command = [python, str(_SEGMENTS), str(_RECIPES / f"train_{framework}.py"), json.dumps(asked)]
        ran = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if ran.returncode:
            raise RuntimeError(f"{framework}, seed {seed}: the training failed:\n{ran.stdout[-4000:]}")
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def main() -> None:
    """Trains, prints the table, and exits with 1 if the curves of a framework differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frameworks", nargs="+", choices=sorted(FRAMEWORKS), default=list(FRAMEWORKS))
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--margin", type=float, default=0.01)
    asked = parser.parse_args()
    print(
        f"| framework | pairs | wall, watched / unwatched | CPU of the trainer | equal at {asked.margin:.0%} | "
        "engine's CPU | frames | curves equal |\n|---|--:|--:|--:|---|--:|--:|---|"
    )
    equal = True
    for framework in asked.frameworks:
        ratios: tuple[list[float], ...] = ([], [], [])
        frames, same = 0, True
        for seed in asked.seeds:
            watched = train(framework, seed, asked.steps, 1)
            same &= watched["digest"] == train(framework, seed, asked.steps, 0)["digest"]
            frames += watched["frames"]
            for clock, found in enumerate(ratios, 1):
                found += pairs_of(watched["segments"], clock)
        equal &= same
        wall, cpu, engine = map(interval, ratios)
        passes = (
            "both"
            if wall.within(asked.margin) and cpu.within(asked.margin)
            else "wall"
            if wall.within(asked.margin)
            else ("CPU" if cpu.within(asked.margin) else "neither")
        )
        print(
            f"| {framework} | {len(ratios[0])} | {_shown(wall)} | {_shown(cpu)} | {passes} | {_shown(engine)} | "
            f"{frames} | {'yes' if same else 'NO'} |",
            flush=True,
        )
    sys.exit(0 if equal else 1)


def _shown(found: Interval) -> str:
    return f"{found.mean:.4f} ({found.low:.4f} .. {found.high:.4f})"


if __name__ == "__main__":
    main()
