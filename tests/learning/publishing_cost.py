"""Trains CartPole-v1 by Stable-Baselines3's PPO with and without publishing its frames, and prints the cost.

Each seed is trained three times: plain; wrapped by tandem.publish_frames with its defaults, without a viewer; and the
same with a viewer. Each training has its own process. They run one after the other, in an order that rotates. Only
`learn` is measured. See docs/examples.md.
"""

import argparse
import os
import statistics
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import SIGTERM

from tests.learning import trainings
from tests.learning.published_cartpole import CONDITIONS
from tests.learning.table import lay_out, spread
from tests.learning.trainings import Job, Training
from viz.testing.virtual_display import virtual_display

SCRIPT = Path(__file__).with_name("train_published.py")
VIEWER = Path(__file__).parents[2] / "bazel-bin" / "viz" / "viewer" / "viewer"
_LABELS = {"plain": "plain", "published": "published, no viewer", "watched": "published, and watched"}


@dataclass(frozen=True)
class PublishedTraining(Training):
    """A finished training.

    Attributes:
      steps: The number of steps, a multiple of the rollout's.
      frames: The number of published frames, by the segment's header.
      renders: The number of calls of the environment's `render`.
    """

    steps: int
    frames: int
    renders: int

    @property
    def rate(self) -> float:
        """The steps a second."""
        return self.steps / self.wall_secs


Found = Mapping[tuple[str, int], PublishedTraining]


def plan(seeds: Sequence[int]) -> list[tuple[str, int]]:
    """Orders the trainings.

    Args:
      seeds: The seeds.

    Returns:
      Each seed with each condition; each condition is the first, the second and the last equally often.
    """
    return [
        (condition, seed)
        for number, seed in enumerate(seeds)
        for condition in (*CONDITIONS[number % 3 :], *CONDITIONS[: number % 3])
    ]


@contextmanager
def watching(viewer: Path, run: str, log: Path) -> Iterator[None]:
    """Runs the viewer for a run, on the existing display or on a virtual one.

    Args:
      viewer: The viewer's program.
      run: The run's id.
      log: The file for the viewer's output.

    Yields:
      Nothing; the viewer was started.
    """
    with ExitStack() as stack:
        environment = dict(os.environ)
        if not environment.get("DISPLAY") and not environment.get("WAYLAND_DISPLAY"):
            environment["DISPLAY"] = stack.enter_context(virtual_display())
        output = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(
            [viewer, f"--run={run}", "--nodaemon"], env=environment, stdout=output, stderr=output
        )
        stack.callback(trainings.end, process, SIGTERM)
        yield


def job(condition: str, seed: int, script: Path, viewer: Path, parsed: argparse.Namespace) -> Job:
    """Makes the job of a training.

    Args:
      condition: One of CONDITIONS.
      seed: The seed.
      script: The training script.
      viewer: The viewer.
      parsed: The parsed command line.

    Returns:
      The job.
    """
    run = f"cartpole-{condition}-seed{seed}-{uuid.uuid4().hex[:8]}"
    command = [
        *(["taskset", "--cpu-list", str(min(parsed.cores))] if parsed.pin else []),
        sys.executable,
        str(script.absolute()),
        f"--condition={condition}",
        f"--run={run}",
        f"--steps={parsed.steps}",
        f"--seed={seed}",
    ]
    pinned = "-pinned" if parsed.pin else ""
    out = parsed.out / f"CartPole-v1-{parsed.steps}{pinned}-{condition}-seed{seed}.json"
    label = f"{_LABELS[condition]}, seed {seed}"
    if condition != "watched":
        return Job(label, command, out)
    return Job(label, command, out, partial(watching, viewer, run, out.with_suffix(".viewer.log")))


def table(found: Found, seeds: Sequence[int]) -> str:
    """Formats the trainings' durations and results as a table."""
    lines = [["training", "steps/s", "of plain's, seed by seed", "frames", "renders", "final return"]]
    for condition in CONDITIONS:
        these = [found[condition, seed] for seed in seeds]
        lines.append(
            [
                _LABELS[condition],
                spread([each.rate for each in these], 0),
                spread([found[condition, seed].rate / found["plain", seed].rate for seed in seeds], 3),
                spread([each.frames for each in these], 0),
                spread([each.renders for each in these], 0),
                f"{statistics.fmean(each.final_return for each in these):.1f}",
            ]
        )
    return lay_out(lines, words=1)


def differing(found: Found, seeds: Sequence[int]) -> list[str]:
    """Returns the names of the trainings whose episodes differ from the plain training's."""
    return [
        f"{_LABELS[condition]}, seed {seed}"
        for seed in seeds
        for condition in CONDITIONS
        if found[condition, seed].returns != found["plain", seed].returns
    ]


def main(arguments: Sequence[str] | None = None, script: Path = SCRIPT, viewer: Path = VIEWER) -> int:
    """Trains, and prints a table.

    Args:
      arguments: The command line; None: the process's own.
      script: The training script.
      viewer: The viewer.

    Returns:
      The exit code: 0 if publishing did not change the training's results.
    """
    parser = argparse.ArgumentParser(
        prog="tools/publishing_cost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pin", action="store_true", help="train on the first core, watch on the others")
    parsed = trainings.parse(parser, arguments, steps=100_000, seeds=range(5), out="publishing")
    wanted = plan(parsed.seeds)
    trainings.announce(f"CartPole-v1, PPO, {parsed.steps:,} steps{', pinned' if parsed.pin else ''}", len(wanted))
    parsed.cores = os.sched_getaffinity(0)
    if parsed.pin:
        if len(parsed.cores) < 2:
            parser.error("--pin: expected two cores, found one")
        os.sched_setaffinity(0, parsed.cores - {min(parsed.cores)})  # the viewer and its display inherit it

    jobs = [job(condition, seed, script, viewer, parsed) for condition, seed in wanted]
    found = dict(zip(wanted, trainings.train_all(jobs, PublishedTraining), strict=True))
    others = differing(found, parsed.seeds)
    print(f"\n{table(found, parsed.seeds)}\n\nmedian (least .. greatest) of the seeds; files: {parsed.out}")
    print(f"episodes equal to the plain training's, digit for digit: {'NO: ' + '; '.join(others) if others else 'yes'}")
    return 1 if others else 0


def run(arguments: Sequence[str] | None = None, script: Path = SCRIPT, viewer: Path = VIEWER) -> int:
    """Runs `main` as a program."""
    return trainings.run(lambda: main(arguments, script, viewer))


if __name__ == "__main__":
    sys.exit(run())
