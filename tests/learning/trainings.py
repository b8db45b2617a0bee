"""Trainings in processes of their own, one after the other, and what each leaves behind.

A training is a program that writes a JSON file, which its argument --out names: `finished`, and the fields of a
`Training`. What is finished already is kept, so that an interrupted command goes on where it was.
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

LAST_EPISODES = 32  # make a return, here and in the training scripts
_LOG_TAIL_LINES = 20
_CLEAN_UP_SECS = 10.0

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
      wall_secs: How long it took, without starting Python.
      episodes: For each episode, in order: steps of all environments at its end, its return, seconds at its end.
    """

    wall_secs: float
    episodes: tuple[tuple[int, float, float], ...]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Reads what a training script wrote.

        Args:
          path: The file.

        Returns:
          The training; None if there is none, or it was interrupted.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):  # the latter: empty until the training has ended
            return None
        if not found["finished"]:
            return None
        found["episodes"] = tuple(tuple(episode) for episode in found["episodes"])
        return cls(**{field.name: found[field.name] for field in dataclasses.fields(cls)})

    @property
    def returns(self) -> tuple[tuple[int, float], ...]:
        """Steps and return of each episode: what does not depend on how fast the machine was."""
        return tuple((steps, value) for steps, value, _ in self.episodes)

    @property
    def final_return(self) -> float:
        """Mean of the last episodes."""
        return statistics.fmean(value for _, value in self.returns[-LAST_EPISODES:])

    def curve(self, steps: Array) -> tuple[Array, Array]:
        """Smooths the returns.

        Args:
          steps: float64[n], where to look; not before the first episode's end.

        Returns:
          float64[n], the mean return of the last episodes until then; float64[n], seconds until then. Both in straight
          lines from one episode's end to the next.
        """
        at, values, seconds = np.array(self.episodes).T
        sums = np.concatenate([[0], np.cumsum(values)])
        ends = np.flatnonzero(np.diff(at, append=np.inf)) + 1  # of episodes that end together, the last counts
        starts = np.maximum(ends - LAST_EPISODES, 0)
        means = (sums[ends] - sums[starts]) / (ends - starts)
        return np.interp(steps, at[ends - 1], means), np.interp(steps, at[ends - 1], seconds[ends - 1])


_Kind = TypeVar("_Kind", bound=Training)


@dataclass(frozen=True)
class Job:
    """One training that is wanted.

    Attributes:
      name: As people say it.
      command: What trains, without --out.
      out: The file that it is to write; what it says goes beside it.
      beside: What is there while it trains.
    """

    name: str
    command: Sequence[str]
    out: Path
    beside: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext


def parse(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, *, steps: int, seeds: Sequence[int], out: str
) -> argparse.Namespace:
    """Reads a command line, and what all such commands take: --steps, --seeds, --out.

    Args:
      parser: Knows everything else.
      arguments: The command line; None: the process's own.
      steps: The default.
      seeds: The default.
      out: The default.

    Returns:
      What was asked for.
    """
    parser.add_argument("--steps", type=int, default=steps, help="of a training; fewer for a short try")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds), metavar="N")
    parser.add_argument("--out", type=Path, default=Path(out), help="folder for what is found")
    parsed = parser.parse_args(arguments)
    if parsed.steps < 1 or min(parsed.seeds) < 0 or len(set(parsed.seeds)) < len(parsed.seeds):
        parser.error("--steps and --seeds: expected positive numbers, no seed twice")
    return parsed


def end(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Ends a process by a signal, or by force where that takes too long."""
    try:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLEAN_UP_SECS)
    finally:
        process.kill()
        process.wait()


def log_of(out: Path) -> Path:
    """Where the training that writes `out` says what it does."""
    return out.with_suffix(".log")


def _train(job: Job) -> None:
    command = [*job.command, f"--out={job.out.absolute()}"]
    with job.beside(), log_of(job.out).open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=job.out.parent,  # there MuJoCo's Python package puts its MUJOCO_LOG.TXT
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C comes to it from here, once, and it has time to clean up
        )
        try:
            code = process.wait()
        except BaseException:
            end(process, signal.SIGINT)
            raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def announce(title: str, count: int) -> None:
    """Says what is about to be done, and where."""
    cores, (load, *_) = len(os.sched_getaffinity(0)), os.getloadavg()
    print(f"{title}, {count} trainings; {cores} cores, load {load:.2f} before", flush=True)


def train_all(jobs: Sequence[Job], kind: type[_Kind]) -> list[_Kind]:
    """Runs the trainings that are not there yet, and says how far it is.

    Args:
      jobs: All trainings; their files lie in one folder.
      kind: What each leaves behind.

    Returns:
      What each left behind, in the order of `jobs`.

    Raises:
      subprocess.SubprocessError: One failed.
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
    """Runs a command that trains as a program: a signal or a failed training ends it with a few lines.

    Args:
      main: What it does.

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
