"""Trains with Tandem and with Gymnasium's own environments, the same scripts over the same seeds, and compares.

The trainings run one after the other. The two vectorisations of a seed are neighbours; their order alternates. Each
training writes a file. Existing files are kept, so that an interrupted command continues. See docs/examples.md.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.learning import trainings
from tests.learning.report import VECTORS, Comparison, VectorTraining, draw, table
from tests.learning.trainings import Job

SCRIPTS = {name: Path(__file__).with_name(f"train_{name}.py") for name in ("ppo_cleanrl", "ppo_sb3")}


@dataclass(frozen=True)
class Run:
    """The parameters of one training."""

    script: str
    vector: str
    seed: int

    def __str__(self) -> str:
        """Formats the parameters for display."""
        return f"{self.script}, {self.vector}, seed {self.seed}"


def plan(scripts: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """Orders the trainings.

    Args:
      scripts: Names of the training scripts.
      seeds: The seeds.

    Returns:
      Each script with each seed and both vectorisations; which of the two is first alternates.
    """
    pairs = [(script, seed) for script in scripts for seed in seeds]
    return [
        Run(script, vector, seed)
        for number, (script, seed) in enumerate(pairs)
        for vector in (VECTORS if number % 2 == 0 else VECTORS[::-1])
    ]


def parse_arguments(arguments: Sequence[str] | None, scripts: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="tools/learning", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="HalfCheetah-v5")
    parser.add_argument("--scripts", nargs="+", choices=scripts, default=scripts)
    parser.add_argument("--num_envs", type=int, default=64)
    parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
    parser.add_argument("--float64", action="store_true", help="do not round values of Gymnasium's own environments")
    return trainings.parse(parser, arguments, steps=300_000, seeds=(0, 1, 2), out="learning")


def job(run: Run, script: Path, parsed: argparse.Namespace) -> Job:
    """Makes the job of a training.

    Args:
      run: The training.
      script: The training script.
      parsed: The parsed command line.

    Returns:
      The job.
    """
    # Environments in Python keep their float64.
    float64 = parsed.float64 or parsed.backend == "python"
    variant = f"{'-float64' if float64 else ''}{f'-{parsed.backend}' if parsed.backend else ''}"
    command = [
        sys.executable,
        str(script.absolute()),
        f"--task={parsed.task}",
        f"--vector={run.vector}",
        f"--steps={parsed.steps}",
        f"--seed={run.seed}",
        f"--num_envs={parsed.num_envs}",
        *(["--float64"] if float64 else []),
        *([f"--backend={parsed.backend}"] if parsed.backend else []),
    ]
    task = f"{parsed.task.replace('/', '-')}x{parsed.num_envs}"
    out = parsed.out / f"{run.script}-{task}-{parsed.steps}{variant}-{run.vector}-seed{run.seed}.json"
    return Job(str(run), command, out)


def main(arguments: Sequence[str] | None = None, scripts: Mapping[str, Path] = SCRIPTS) -> int:
    """Trains, prints a table, and draws a picture.

    Args:
      arguments: The command line; None: the process's own.
      scripts: The training scripts by name.

    Returns:
      The exit code: 0 if Tandem's mean is within Gymnasium's range and Tandem took less time, for each script.
    """
    parsed = parse_arguments(arguments, list(scripts))
    runs = plan(parsed.scripts, parsed.seeds)
    title = f"{parsed.task}, {parsed.steps:,} steps{', in Python' if parsed.backend == 'python' else ''}"
    trainings.announce(title, len(runs))
    jobs = [job(run, scripts[run.script], parsed) for run in runs]
    found = dict(zip(runs, trainings.train_all(jobs, VectorTraining), strict=True))
    comparisons = [
        Comparison(
            script,
            parsed.seeds,
            {vector: [found[Run(script, vector, seed)] for seed in parsed.seeds] for vector in VECTORS},
        )
        for script in parsed.scripts
    ]
    picture = parsed.out / "learning.png"
    draw(picture, title, comparisons)
    print(f"\n{table(comparisons)}\n")
    for comparison in comparisons:
        print(comparison.verdict())
    print(f"\ncurves: {picture}")
    return 0 if all(comparison.within and comparison.faster for comparison in comparisons) else 1


def run(arguments: Sequence[str] | None = None, scripts: Mapping[str, Path] = SCRIPTS) -> int:
    """Runs `main` as a program."""
    return trainings.run(lambda: main(arguments, scripts))


if __name__ == "__main__":
    sys.exit(run())
