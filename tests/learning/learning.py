"""Trains with Tandem and with Gymnasium's own environments, the same scripts over the same seeds, and compares.

The trainings run one after the other, the two vectorisations of a seed next to each other, in an order that alternates.
Each leaves a file; those that are there already are kept, so that an interrupted run goes on where it was. See
docs/examples.md.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.learning.report import VECTORS, Comparison, Training, draw, table

_EXAMPLES = Path(__file__).parents[2] / "client_py" / "examples"
SCRIPTS = {"ppo_cleanrl": _EXAMPLES / "train_ppo_cleanrl.py", "ppo_sb3": _EXAMPLES / "train_ppo_sb3.py"}
_LOG_TAIL_LINES = 20


@dataclass(frozen=True)
class Run:
    """One training that is wanted."""

    script: str
    vector: str
    seed: int

    def __str__(self) -> str:
        """Says it as people do."""
        return f"{self.script}, {self.vector}, seed {self.seed}"


def plan(scripts: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """Orders the trainings.

    Args:
      scripts: Names of the training scripts.
      seeds: The seeds.

    Returns:
      Every script with every seed and both vectorisations, which take turns at being first.
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
    parser.add_argument("--steps", type=int, default=300_000, help="of a training; 100000 for a short try")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="N")
    parser.add_argument("--scripts", nargs="+", choices=scripts, default=scripts)
    parser.add_argument("--float64", action="store_true", help="don't round what Gymnasium's own environments give")
    parser.add_argument("--out", type=Path, default=Path("learning"), help="folder for the files and learning.png")
    parsed = parser.parse_args(arguments)
    if parsed.steps < 1 or min(parsed.seeds) < 0 or len(set(parsed.seeds)) < len(parsed.seeds):
        parser.error("--steps and --seeds: expected positive numbers, no seed twice")
    return parsed


def train(script: Path, run: Run, parsed: argparse.Namespace, out: Path) -> None:
    """Runs one training to its end.

    Args:
      script: The training script.
      run: Which training.
      parsed: The command line.
      out: The file that the script is to write; what it says goes beside it.

    Raises:
      subprocess.CalledProcessError: It failed.
    """
    command = [
        sys.executable,
        str(script.absolute()),
        f"--task={parsed.task}",
        f"--vector={run.vector}",
        f"--steps={parsed.steps}",
        f"--seed={run.seed}",
        f"--out={out.absolute()}",
        *(["--float64"] if parsed.float64 else []),
    ]
    # In that folder: there MuJoCo's Python package puts its MUJOCO_LOG.TXT.
    with out.with_suffix(".log").open("wb") as log:
        subprocess.run(
            command, cwd=out.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=True
        )


def train_all(runs: Sequence[Run], scripts: Mapping[str, Path], parsed: argparse.Namespace) -> dict[Run, Training]:
    """Runs the trainings that are not there yet.

    Args:
      runs: All trainings.
      scripts: Where the scripts are.
      parsed: The command line.

    Returns:
      What each left behind.

    Raises:
      subprocess.CalledProcessError: One failed.
    """
    rounding = "-float64" if parsed.float64 else ""
    files = {
        run: parsed.out / f"{run.script}-{parsed.task}-{parsed.steps}{rounding}-{run.vector}-seed{run.seed}.json"
        for run in runs
    }
    found = {run: training for run, path in files.items() if (training := Training.read(path))}
    missing = [run for run in runs if run not in found]
    if found:
        print(f"{len(found)} of {len(runs)} trainings are in {parsed.out} already, and kept", flush=True)
    started = time.monotonic()
    for number, run in enumerate(missing):
        print(f"{run} ...", end=" ", flush=True)
        train(scripts[run.script], run, parsed, files[run])
        training = Training.read(files[run])
        if training is None or not training.episodes:
            raise subprocess.SubprocessError(
                f"expected a finished training with episodes in {files[run]}, found none; more --steps?"
            )
        found[run] = training
        left = (time.monotonic() - started) / (number + 1) * (len(missing) - number - 1)
        print(f"return {training.final_return:.1f}, {training.wall_secs:.1f} s; {left / 60:.0f} min left", flush=True)
    return found


def main(arguments: Sequence[str] | None = None, scripts: Mapping[str, Path] = SCRIPTS) -> int:
    """Trains, prints a table, draws a picture.

    Args:
      arguments: The command line; None: the process's own.
      scripts: Name and place of the training scripts.

    Returns:
      The exit code: 0 if Tandem's final mean is within the others' range, in less time, by every script.
    """
    parsed = parse_arguments(arguments, list(scripts))
    parsed.out.mkdir(parents=True, exist_ok=True)
    runs = plan(parsed.scripts, parsed.seeds)
    title = f"{parsed.task}, {parsed.steps:,} steps"
    cores, (load, *_) = len(os.sched_getaffinity(0)), os.getloadavg()
    print(f"{title}, {len(runs)} trainings; {cores} cores, load {load:.2f} before", flush=True)
    found = train_all(runs, scripts, parsed)
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
    """Runs `main` as a program: a signal or a failed training ends it with a few lines."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return main(arguments, scripts)
    except KeyboardInterrupt:
        print("\ntandem: interrupted; the same command goes on with the training that was under way", file=sys.stderr)
        return 130
    except subprocess.CalledProcessError as error:
        out = next(part.removeprefix("--out=") for part in error.cmd if part.startswith("--out="))
        log = Path(out).with_suffix(".log")
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        print("", *tail, sep="\n", file=sys.stderr)
        print(f"tandem: a training failed with code {error.returncode}; all it said is in {log}", file=sys.stderr)
        return 2
    except subprocess.SubprocessError as error:
        print(f"\ntandem: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(run())
