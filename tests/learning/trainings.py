"""Runs trainings in separate processes, one after the other, and reads their results.

A training is a program that writes a JSON file, named by its argument --out: `finished`, and the fields of a
`Training`. Results of finished trainings are kept, so that an interrupted command continues.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

LAST_EPISODES = 32  # the episodes of a mean return, here and in the training scripts
_LOG_TAIL_LINES = 20
_CLEAN_UP_SECS = 10.0

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
      wall_secs: The duration in seconds, without the start of Python.
      episodes: For each episode, in order: steps of all environments at its end, its return, seconds at its end.
    """

    wall_secs: float
    episodes: tuple[tuple[int, float, float], ...]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Reads a training script's result file.

        Args:
          path: The file.

        Returns:
          The training; None if there is none, or it was interrupted.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):  # the file is empty until the training has ended
            return None
        if not found["finished"]:
            return None
        found["episodes"] = tuple(tuple(episode) for episode in found["episodes"])
        return cls(**{field.name: found[field.name] for field in dataclasses.fields(cls)})

    @property
    def returns(self) -> tuple[tuple[int, float], ...]:
        """The steps and return of each episode, which do not depend on the machine's speed."""
        return tuple((steps, value) for steps, value, _ in self.episodes)

    @property
    def final_return(self) -> float:
        """The mean return of the last episodes."""
        return statistics.fmean(value for _, value in self.returns[-LAST_EPISODES:])

    def curve(self, steps: Array) -> tuple[Array, Array]:
        """Smooths the returns.

        Args:
          steps: float64[n], where to evaluate; not before the first episode's end.

        Returns:
          float64[n], the mean return of the last episodes until then; float64[n], seconds until then. Both are linear
          between the ends of two episodes.
        """
        at, values, seconds = np.array(self.episodes).T
        sums = np.concatenate([[0], np.cumsum(values)])
        ends = np.flatnonzero(np.diff(at, append=np.inf)) + 1  # of episodes that end together, the last one
        starts = np.maximum(ends - LAST_EPISODES, 0)
        means = (sums[ends] - sums[starts]) / (ends - starts)
        return np.interp(steps, at[ends - 1], means), np.interp(steps, at[ends - 1], seconds[ends - 1])


_Kind = TypeVar("_Kind", bound=Training)


@dataclass(frozen=True)
class Job:
    """A training to run.

    Attributes:
      name: The name for messages.
      command: The training's command, without --out.
      out: The result file; the log file is beside it.
      beside: A context manager that is open during the training.
    """

    name: str
    command: Sequence[str]
    out: Path
    beside: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext


def parse(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, *, steps: int, seeds: Sequence[int], out: str
) -> argparse.Namespace:
    """Parses a command line with the common flags --steps, --seeds and --out.

    Args:
      parser: The parser with all other flags.
      arguments: The command line; None: the process's own.
      steps: The default of --steps.
      seeds: The default of --seeds.
      out: The default of --out.

    Returns:
      The parsed command line.
    """
    parser.add_argument("--steps", type=int, default=steps, help="of a training; fewer for a short try")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds), metavar="N")
    parser.add_argument("--out", type=Path, default=Path(out), help="folder for what is found")
    parsed = parser.parse_args(arguments)
    if parsed.steps < 1 or min(parsed.seeds) < 0 or len(set(parsed.seeds)) < len(parsed.seeds):
        parser.error("--steps and --seeds: expected positive numbers, no seed twice")
    return parsed


def end(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Ends a process by a signal, or by SIGKILL if that takes too long."""
    try:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLEAN_UP_SECS)
    finally:
        process.kill()
        process.wait()


def log_of(out: Path) -> Path:
    """Returns the path of the log file of the training that writes `out`."""
    return out.with_suffix(".log")


def _train(job: Job) -> None:
    command = [*job.command, f"--out={job.out.absolute()}"]
    with job.beside(), log_of(job.out).open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=job.out.parent,  # MuJoCo's Python package writes its MUJOCO_LOG.TXT there
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that Ctrl-C reaches it only once, by `end`, and it can clean up
        )
        try:
            code = process.wait()
        except BaseException:
            end(process, signal.SIGINT)
            raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def announce(title: str, count: int) -> None:
    """Prints the title, the number of trainings, and the machine's load."""
    cores, (load, *_) = len(os.sched_getaffinity(0)), os.getloadavg()
    print(f"{title}, {count} trainings; {cores} cores, load {load:.2f} before", flush=True)


def train_all(jobs: Sequence[Job], kind: type[_Kind]) -> list[_Kind]:
    """Runs the trainings without a result, and prints the progress.

    Args:
      jobs: All trainings; their result files are in one folder.
      kind: The class of the results.

    Returns:
      The results, in the order of `jobs`.

    Raises:
      subprocess.SubprocessError: A training failed.
    """
    folder = jobs[0].out.parent
    folder.mkdir(parents=True, exist_ok=True)
    found = [kind.read(job.out) for job in jobs]
    missing = [at for at, training in enumerate(found) if training is None]
    if len(missing) < len(jobs):
        print(f"{len(jobs) - len(missing)} of {len(jobs)} trainings are in {folder} already, and kept", flush=True)
    started = time.monotonic()
    for done, at in enumerate(missing, 1):
        job = jobs[at]
        print(f"{job.name} ...", end=" ", flush=True)
        _train(job)
        training = found[at] = kind.read(job.out)
        if training is None or not training.episodes:
            raise subprocess.SubprocessError(
                f"expected a finished training with episodes in {job.out}, found none; more --steps?"
            )
        left = (time.monotonic() - started) / done * (len(missing) - done)
        print(f"return {training.final_return:.1f}, {training.wall_secs:.1f} s; {left / 60:.0f} min left", flush=True)
    return [training for training in found if training is not None]


def run(main: Callable[[], int]) -> int:
    """Runs a command that trains; after a signal or a failed training prints a short error.

    Args:
      main: The command.

    Returns:
      The exit code: that of `main`, 2 after a failure, 130 after a signal.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        print("\ntandem: interrupted; the same command goes on with the training that was under way", file=sys.stderr)
        return 130
    except subprocess.CalledProcessError as error:
        out = next(part.removeprefix("--out=") for part in error.cmd if part.startswith("--out="))
        log = log_of(Path(out))
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        print("", *tail, sep="\n", file=sys.stderr)
        print(f"tandem: a training failed with code {error.returncode}; all it said is in {log}", file=sys.stderr)
        return 2
    except subprocess.SubprocessError as error:
        print(f"\ntandem: {error}", file=sys.stderr)
        return 2
