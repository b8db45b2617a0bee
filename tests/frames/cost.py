"""What a viewer costs a run: steps a second with one and without, in turn, in the same run.

    bazel run //tests/frames:cost -- --pairs 20

The thread that steps and the trainer have one core, the render thread and the viewer another: what is measured is what
frames take from the steps, and not that cores are few; --shared puts no thread anywhere. On a machine that other work
keeps busy, rates say little: there the processor time of the thread that steps, for each of its steps, is what to read.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import tandem
from tests.frames.frame_watcher import FrameWatcher

_RENDER_THREAD = "tandem-frames"
_SETTLE_SECS = 0.5  # until the engine has noticed who came or left
_FOR_95_PERCENT = 1.96


def _view(name: str) -> None:
    """Is the viewer: takes the newest frame sixty times a second until its standard input closes."""
    os.set_blocking(sys.stdin.fileno(), False)
    with FrameWatcher(name) as watcher:
        while sys.stdin.buffer.read() is None:
            watcher.latest()
            time.sleep(1 / 60)


def _place(engine: tandem.EngineProcess, steps: int, frames: int) -> None:
    """Puts this process and the engine's threads on their cores."""
    os.sched_setaffinity(0, {steps})
    for thread in Path(f"/proc/{engine.pid}/task").iterdir():
        drawing = (thread / "comm").read_text(encoding="ascii").strip() == _RENDER_THREAD
        os.sched_setaffinity(int(thread.name), {frames if drawing else steps})


def _stepping_ns(engine: tandem.EngineProcess) -> int:
    """Nanoseconds that the engine's main thread, which steps, has been on a core."""
    return int(Path(f"/proc/{engine.pid}/task/{engine.pid}/schedstat").read_text(encoding="ascii").split()[0])


def _steps_per_second(client: tandem.SharedMemoryClient, seconds: float) -> float:
    actions = np.random.default_rng(0).uniform(-1, 1, (client.num_envs, client.act_size)).astype(np.float32)
    count, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        client.step(actions)
        count += client.num_envs
    return count / passed


def main() -> None:
    """Measures, and prints the difference with its interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="HalfCheetah-v5")
    parser.add_argument("--num_envs", type=int, default=16)
    parser.add_argument("--frames", default="320x240")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each half of a pair")
    parser.add_argument("--shared", action="store_true", help="leave the threads to the system")
    parser.add_argument("--view", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.view:
        _view(options.view)
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 and not options.shared:
        parser.error("expected two cores, found one; --shared measures on it")
    with (
        tandem.launch_engine(options.task, num_envs=options.num_envs, threads=1, frames=options.frames) as engine,
        tandem.SharedMemoryClient(engine.name) as client,
        FrameWatcher(engine.name, looks=False) as witness,
    ):
        client.reset(seed=0)
        if not options.shared:
            _place(engine, cores[0], cores[1])
        rate_ratios, time_ratios, frames = [], [], 0
        for pair in range(options.pairs + 1):
            rates: dict[bool, float] = {}
            times: dict[bool, float] = {}
            for watched in (False, True) if pair % 2 else (True, False):
                viewer = _start_viewer(engine.name) if watched else None
                if viewer is not None and not options.shared:
                    os.sched_setaffinity(viewer.pid, {cores[1]})
                before = witness.head
                _steps_per_second(client, _SETTLE_SECS)
                while watched and witness.head < before + 3:
                    _steps_per_second(client, _SETTLE_SECS)
                before, before_ns = witness.head, _stepping_ns(engine)
                rates[watched] = _steps_per_second(client, options.seconds)
                times[watched] = (_stepping_ns(engine) - before_ns) / (rates[watched] * options.seconds)
                if viewer is not None:
                    frames += witness.head - before if pair else 0
                    viewer.communicate()
            if pair:  # the first one loads what draws
                rate_ratios.append(rates[True] / rates[False])
                time_ratios.append(times[True] / times[False])
    print(
        f"{options.task}, {options.num_envs} environments, four of {options.frames} watched at "
        f"{frames / options.pairs / options.seconds:.0f} frames/s, {options.pairs} pairs; with a viewer:\n"
        f"  steps a second                      {_change(rate_ratios)}\n"
        f"  processor time of a step            {_change(time_ratios)}"
    )


def _start_viewer(name: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__, "--view", name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)


def _change(ratios: list[float]) -> str:
    """The mean, in percent, with its interval."""
    mean = 100 * (statistics.mean(ratios) - 1)
    margin = 100 * _FOR_95_PERCENT * statistics.stdev(ratios) / len(ratios) ** 0.5
    return f"{mean:+6.2f} % (95 %: {mean - margin:+.2f} to {mean + margin:+.2f})"


if __name__ == "__main__":
    main()
