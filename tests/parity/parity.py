"""Compares tasks with Gymnasium's for many seeds, and prints the progress."""

import argparse
import sys

from gymnasium.vector import AutoresetMode

from tandem.environments.registration import TASKS
from tests.parity.comparison import compare


def main() -> int:
    """Runs the comparisons of the command line.

    Returns:
      0, or 1 if there was a difference.
    """
    parser = argparse.ArgumentParser(
        prog="tools/parity",
        description="Steps every task and Gymnasium's own SyncVectorEnv by the same seeds, random actions and resets, "
        "in each autoreset mode, and compares all that they return.",
    )
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="compare seeds 0 .. N - 1 (default: 20)")
    parser.add_argument("--steps", type=int, default=1010, metavar="N", help="steps for each (default: 1010)")
    parser.add_argument("--task", choices=sorted(TASKS), action="append", metavar="TASK", help="only this one; repeat")
    options = parser.parse_args()
    if options.seeds < 1 or options.steps < 1:
        parser.error(f"expected --seeds and --steps from 1, found {options.seeds} and {options.steps}")
    tasks = options.task or sorted(TASKS)
    failures = 0
    for number, task in enumerate(tasks, 1):
        totals = {"terminated": 0, "truncated": 0, "masked": 0}
        for mode in AutoresetMode:
            for seed in range(options.seeds):
                print(
                    f"\r[{number}/{len(tasks)}] {task} {mode.name} seed {seed} ",
                    end="\x1b[K",
                    file=sys.stderr,
                    flush=True,
                )
                try:
                    for what, count in compare(task, mode, seed, steps=options.steps).items():
                        totals[what] += count
                except AssertionError as error:
                    failures += 1
                    print(f"\n{error}", file=sys.stderr)
        print("\r", end="\x1b[K", file=sys.stderr, flush=True)
        happened = ", ".join(f"{count} {what}" for what, count in totals.items())
        print(
            f"{task}: {len(AutoresetMode)} modes x {options.seeds} seeds x {options.steps} steps; {happened}",
            flush=True,
        )
    print(f"{failures} of {len(tasks) * len(AutoresetMode) * options.seeds} runs differ from Gymnasium")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nstopped")
