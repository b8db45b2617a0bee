"""Measures what publishing and watching cost a training by each framework, and tests that it is below a margin.

Runs recipes of client_py/examples/frameworks on Tandem's CartPole-v1. A segment of a training is a rollout and its
update. Three segments are a round, in random order: without a viewer; with an attached viewer that does not read, for
which the engine draws and publishes 60 frames a second; with one that also reads them. Two one-sided tests (TOST) of
the mean logarithm of the ratios to the segment without a viewer, without the most extreme tenth on each side (Yuen's
trimmed means). Each training is repeated without frames; rewards and ends of episodes must be equal.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tests.learning.recipe_runs import FRAMEWORKS, HORIZON, Asked, Found, random_return, train

_TRIMMED = 0.1  # on each side
_FRAMES = "320x240"
CONDITIONS = ("off", "published", "watched")


@dataclass(frozen=True)
class Interval:
    """A ratio of times, with / without.

    Attributes:
      mean: Of the rounds.
      low: The lower end of the interval of 90 %, by which TOST decides at 5 %.
      high: The upper end.
    """

    mean: float
    low: float
    high: float

    def within(self, margin: float) -> bool:
        """Returns whether the test says that the ratio is 1, but for the margin."""
        return 1 - margin < self.low and self.high < 1 + margin

    def __str__(self) -> str:
        """Returns mean and ends."""
        return f"{self.mean:.4f} ({self.low:.4f} .. {self.high:.4f})"


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


def ratios_of(found: Found, condition: str, clock: int) -> list[float]:
    """Returns condition / off of each round, of one clock, without the first round, which warms up."""
    count, ratios = len(CONDITIONS), []
    for start in range(count, len(found.segments) - count + 1, count):
        times = {segment[0]: float(segment[clock]) for segment in found.segments[start : start + count]}
        ratios.append(times[condition] / times["off"])
    return ratios


def _verdict(wall: Interval, cpu: Interval, margin: float) -> str:
    return {(True, True): "both", (True, False): "wall", (False, True): "CPU", (False, False): "neither"}[
        wall.within(margin), cpu.within(margin)
    ]


def _frame_rate(runs: Sequence[Found], condition: str) -> str:
    secs = sum(segment[1] for run in runs for segment in run.segments if segment[0] == "watched")
    return f"{sum(run.frames for run in runs) / secs:.0f}" if condition == "watched" else ""


def main() -> None:
    """Trains, prints a table, and exits with 1 if curves differ or a training did not learn."""
    parser = argparse.ArgumentParser(
        prog="tools/watching_cost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=list(FRAMEWORKS))
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--margin", type=float, default=0.01)
    parser.add_argument("--shared", action="store_true", help="pin nothing: frames take time from the training's core")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--times_only", action="store_true", help="only the trainings with segments: on a silent machine")
    only.add_argument("--curves_only", action="store_true", help="compare the curves only: beside other work")
    asked = parser.parse_args()
    least_steps = 3 * len(CONDITIONS) * HORIZON * Asked.num_envs
    if asked.steps < least_steps:
        parser.error(f"--steps: expected three rounds, {least_steps} or more, found {asked.steps}")
    cores = tuple(sorted(os.sched_getaffinity(0))[:2])
    if len(cores) < 2 and not (asked.shared or asked.curves_only):
        parser.error("expected two cores, found one; --shared measures on it")
    if asked.shared or asked.curves_only:
        cores = ()
    limit = random_return()
    print(
        f"{asked.steps:,} steps, seeds {asked.seeds}; {'cores shared' if not cores else 'viewer on its own core'}; "
        f"return of a random policy, 99th percentile: {limit:.0f}\n\n"
        "| framework | condition | rounds | wall, relative to off | CPU of the trainer | "
        f"equal at {asked.margin:.0%} | CPU of the engine | frames/s read | least return | curves equal |\n"
        "|---|---|--:|--:|--:|---|--:|--:|--:|---|"
    )
    good = True
    for framework in asked.frameworks:
        runs: list[Found] = []
        same = "not compared"
        for seed in asked.seeds:
            options = {"frames": _FRAMES, "threads": 1}
            run = train(Asked(framework, seed, asked.steps, conditions=CONDITIONS, options=options, cores=cores))
            runs.append(run)
            if not asked.times_only:
                plain = train(Asked(framework, seed, asked.steps, options={"threads": 1}, cores=cores))
                equal = run.digest == plain.digest and same != "NO"
                same = "yes" if equal else "NO"
        least = min(run.last_return for run in runs)
        good = good and same != "NO" and least > limit
        for condition in CONDITIONS[1:]:
            ratios = [[one for run in runs for one in ratios_of(run, condition, clock)] for clock in (1, 2, 3)]
            wall, cpu, engine = map(interval, ratios)
            times = f"{wall} | {cpu} | {_verdict(wall, cpu, asked.margin)} | {engine} | {_frame_rate(runs, condition)}"
            if asked.curves_only:
                times = " | " * 4
            print(
                f"| {framework} | {condition} | {len(ratios[0])} | {times} | {least:.1f} | {same} |",
                flush=True,
            )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
