"""The cost of the viewer: a training's steps a second with and without an open window, by turns, in one run.

    bazel run //tests/frames:cost -- --rounds 40
    bazel run //tests/frames:cost -- --rounds 40 --page    # a browser with the page, in place of the window

The training is the quickstart's, an iteration of augmented random search; all parts of a round make the same steps:
unwatched; with a busy loop on the viewer's core, since on many machines a busy core slows its neighbour; watched.
The trainer and the stepping thread have one core; the render thread, the viewer and its display have another. So the
measurement shows the viewer's effect on the steps, and not a lack of cores. --shared pins no thread, and uses a
stepping thread for each core, as the quickstart does: then the viewer gets only the time that the training leaves.
"""

import argparse
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

import tandem
from examples.train_ars import EPISODE_STEPS, TASK, Search
from tests.frames.cores import place_engine
from tests.frames.frame_watcher import FrameWatcher
from viz.testing.virtual_display import virtual_display

_VIEWER = Path("viz/viewer/viewer")
_RESAMPLES = 10_000
_START_SECS = 8.0  # a browser's own start, such as its first look for components, is not watching
_CONDITIONS = ("unwatched", "busy", "watched")


@contextmanager
def _viewer(display: str, run: str, cores: str) -> Iterator[None]:
    """Runs the viewer."""
    command = ["taskset", "--cpu-list", cores, str(_VIEWER), f"--run={run}", "--nodaemon"]
    viewer = subprocess.Popen(command, env={**os.environ, "DISPLAY": display})
    try:
        yield
    finally:
        viewer.terminate()
        viewer.wait()


@contextmanager
def _busy(cores: str) -> Iterator[None]:
    """Runs a loop."""
    with subprocess.Popen(["taskset", "--cpu-list", cores, "sh", "-c", "while :; do :; done"]) as loop:
        try:
            yield
        finally:
            loop.kill()


@contextmanager
def _page(run: str, cores: str) -> Iterator[None]:
    """Runs the page's server and a browser that shows the run."""
    # Not above: without --page no browser is needed.
    from tests.web.page_fixture import Page, running_view

    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(map(int, cores.split(","))))  # the processes inherit it
    try:
        with running_view() as view:
            page = Page()
            try:
                page.open(view.address)
                page.open_run(run)
                os.sched_setaffinity(0, before)
                yield
            finally:
                page.close()
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _neighbour(
    condition: str,
    client: tandem.SharedMemoryClient,
    witness: FrameWatcher,
    cores: str,
    watching: Callable[[], AbstractContextManager[None]],
) -> Iterator[None]:
    """Runs what a condition has on the other core; a viewer has shown frames before the body runs."""
    if condition == "unwatched":
        yield
    elif condition == "busy":
        with _busy(cores):
            yield
    else:
        before = witness.head
        client.reset(seed=0)
        with watching():
            started = time.monotonic() + _START_SECS
            while witness.head < before + 3 or time.monotonic() < started:
                client.step(client.actions)
            yield


def _steps_per_second(client: tandem.SharedMemoryClient, seed: int) -> float:
    start = time.perf_counter()
    Search(client, seed=seed).iterate()
    return client.num_envs * EPISODE_STEPS / (time.perf_counter() - start)


def _interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % bootstrap interval (Efron's percentiles) of the mean."""
    picks = np.random.default_rng(0).integers(len(ratios), size=(_RESAMPLES, len(ratios)))
    low, high = np.quantile(np.asarray(ratios)[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num_envs", type=int, default=64)
    parser.add_argument("--frames", default="320x240")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--page", action="store_true", help="watch by tandem-view's page in Chromium")
    parser.add_argument("--shared", action="store_true", help="leave the threads to the system")
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error(f"--rounds: expected two or more, found {options.rounds}")
    if len(os.sched_getaffinity(0)) < 2 and not options.shared:
        parser.error("expected two cores, found one; --shared measures on it")
    return options


def main() -> None:
    """Measures, and prints the differences with their intervals."""
    options = _parse()
    cores = sorted(os.sched_getaffinity(0))
    of_frames = ",".join(map(str, cores if options.shared else cores[1:2]))
    # Without a core of its own, a busy process would take time from the training.
    conditions = [each for each in _CONDITIONS if each != "busy" or not options.shared]
    if not options.shared:
        os.sched_setaffinity(0, {cores[1]})  # the display process inherits it
    with virtual_display() as display:
        os.sched_setaffinity(0, cores)
        with (
            tandem.launch_engine(
                TASK, num_envs=options.num_envs, threads=0 if options.shared else 1, frames=options.frames
            ) as engine,
            tandem.SharedMemoryClient(engine.name) as client,
            FrameWatcher(engine.name, is_reader=False) as witness,
        ):
            if not options.shared:
                os.sched_setaffinity(0, {cores[0]})
                place_engine(engine.pid, steps=cores[0], frames=cores[1])
            watching = partial(_page if options.page else partial(_viewer, display), engine.name, of_frames)
            rounds = []
            frames, watched_secs = 0, 0.0
            for number in range(options.rounds + 1):
                turn = number % len(conditions)
                rates: dict[str, float] = {}
                for condition in (*conditions[turn:], *conditions[:turn]):
                    with _neighbour(condition, client, witness, of_frames, watching):
                        before, start = witness.head, time.perf_counter()
                        rates[condition] = _steps_per_second(client, number)
                        if number and condition == "watched":
                            frames += witness.head - before
                            watched_secs += time.perf_counter() - start
                if number:  # the first round, a warm-up, loads the renderer
                    rounds.append(rates)
                    changes = (
                        f"{each} {100 * (rates[each] / rates['unwatched'] - 1):+.2f} %" for each in conditions[1:]
                    )
                    print(f"round {number:3d} of {options.rounds}: {', '.join(changes)}", flush=True)
    where = "the page" if options.page else "the viewer's window"
    unwatched = [each["unwatched"] for each in rounds]
    print(
        f"\n{TASK}, {options.num_envs} environments, four of {options.frames} in {where} at "
        f"{frames / watched_secs:.0f} frames/s, {options.rounds} rounds\n"
        f"  training steps/s, unwatched   {np.median(unwatched):,.0f} ({min(unwatched):,.0f} .. {max(unwatched):,.0f})"
    )
    for above, below in (("busy", "unwatched"), ("watched", "unwatched"), ("watched", "busy")):
        if above in conditions and below in conditions:
            ratios = [each[above] / each[below] for each in rounds]
            low, high = _interval(ratios)
            print(
                f"  {above} compared with {below}: mean {100 * (np.mean(ratios) - 1):+.2f} % "
                f"(95 %: {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
            )


if __name__ == "__main__":
    main()
