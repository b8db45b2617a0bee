"""Measures what publishing and watching cost a training by each framework, and tests that it is below a margin.

Runs recipes of client_py/examples/frameworks on Tandem's CartPole-v1. A segment of a training is a rollout and its
update; every second one is measured, and the viewer is switched before each of the others. Four measured segments are a
round, in random order: without a viewer ("off"); without a viewer, beside a process that computes on the viewer's core
as often and as long as an engine that draws ("busy"); with an attached viewer that does not read, for which the engine
draws and publishes 60 frames a second ("published"); with one that also reads them ("watched"). Two one-sided tests
(TOST) of the mean logarithm of the ratios to off and to busy, without the most extreme tenth on each side (Yuen's
trimmed means). The wall time in Tandem's calls is measured, too. Each training is repeated without frames; rewards and
ends of episodes must be equal.
"""

import argparse
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tests.learning.recipe_runs import FRAMEWORKS, HORIZON, Asked, Found, random_return, train

_TRIMMED = 0.1  # on each side
_FRAMES = "320x240"
BASES = ("off", "busy")
_TIMES = (
    *(f"{clock} / {base}" for clock in ("wall", "CPU") for base in BASES),
    "both equal to",
    "wall / off by Tandem's calls alone",
    "CPU of the engine / off",
    "frames/s read",
)
CONDITIONS = (*BASES, "published", "watched")


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


def _rounds(found: Found) -> Iterator[dict[str, Any]]:
    count = len(CONDITIONS)
    for start in range(count, len(found.segments) - count + 1, count):  # the first round warms up
        yield {segment[0]: segment for segment in found.segments[start : start + count]}


def ratio(runs: Sequence[Found], condition: str, base: str, clock: int) -> Interval:
    """Returns condition / base of all rounds, of one clock."""
    return interval([times[condition][clock] / times[base][clock] for run in runs for times in _rounds(run)])


def calls_alone(runs: Sequence[Found], condition: str) -> Interval:
    """Returns condition / off of the wall time, as if only the time in Tandem's calls had changed."""
    return interval(
        [1 + (times[condition][4] - times["off"][4]) / times["off"][1] for run in runs for times in _rounds(run)]
    )


def cells(runs: Sequence[Found], condition: str, margin: float) -> list[str]:
    """Returns the cells of a row that hold times."""
    bases = [base for base in BASES if base != condition]
    walls, cpus = ({base: ratio(runs, condition, base, clock) for base in bases} for clock in (1, 2))
    equal = [base for base in bases if walls[base].within(margin) and cpus[base].within(margin)]
    return [
        *(str(clock.get(base, "")) for clock in (walls, cpus) for base in BASES),
        " and ".join(equal) or "neither",
        str(calls_alone(runs, condition)),
        str(ratio(runs, condition, "off", 3)),
        _frame_rate(runs, condition),
    ]


def _frame_rate(runs: Sequence[Found], condition: str) -> str:
    if condition != "watched":
        return ""
    secs = sum(segment[1] for run in runs for segment in run.segments if segment[0] == condition)
    return f"{sum(run.frames for run in runs) / (2 * secs):.0f}"  # the viewer also reads in the segments before


def main() -> None:
    """Trains, prints a table, and exits with 1 if curves differ or a training did not learn."""
    parser = argparse.ArgumentParser(
        prog="tools/watching_cost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=list(FRAMEWORKS))
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--margin", type=float, default=0.01)
    parser.add_argument("--shared", action="store_true", help="pin nothing: frames take time from the training's core")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--times_only", action="store_true", help="only the trainings with segments: on a silent machine")
    only.add_argument("--curves_only", action="store_true", help="compare the curves only: beside other work")
    asked = parser.parse_args()
    least_steps = 2 * 3 * len(CONDITIONS) * HORIZON * Asked.num_envs
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
        f"return of a random policy, 99th percentile: {limit:.0f}; equal: within {asked.margin:.0%}\n\n"
        f"| {' | '.join(('framework', 'condition', 'rounds', *_TIMES, 'least return', 'curves equal'))} |\n"
        f"|---|---|--:|{'--:|' * len(_TIMES)}--:|---|"
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
            times = [""] * len(_TIMES) if asked.curves_only else cells(runs, condition, asked.margin)
            rounds = sum(1 for run in runs for _ in _rounds(run))
            print(
                f"| {framework} | {condition} | {rounds} | {' | '.join(times)} | {least:.1f} | {same} |",
                flush=True,
            )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
