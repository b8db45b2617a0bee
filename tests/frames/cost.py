"""The cost of the viewer: a training's steps a second with and without an open window, by turns, in one run.

    bazel run //tests/frames:cost -- --pairs 20
    bazel run //tests/frames:cost -- --pairs 20 --page    # a browser with the page, in place of the window

The training is the quickstart's, an iteration of augmented random search; both halves of a pair make the same steps.
The trainer and the stepping thread have one core; the render thread, the viewer and its display have another. So the
measurement shows the viewer's effect on the steps, and not a lack of cores. --shared pins no thread, and uses a
stepping thread for each core, as the quickstart does: then the viewer gets only the time that the training leaves.
"""

import argparse
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tandem
from examples.train_ars import EPISODE_STEPS, TASK, Search
from tests.frames.cores import place_engine
from tests.frames.frame_watcher import FrameWatcher
from viz.testing.virtual_display import virtual_display

_VIEWER = Path("viz/viewer/viewer")
_RESAMPLES = 10_000


@contextmanager
def _viewer(run: str, display: str, cores: str) -> Iterator[None]:
    """Runs the viewer."""
    command = ["taskset", "--cpu-list", cores, str(_VIEWER), f"--run={run}"]
    viewer = subprocess.Popen(command, env={**os.environ, "DISPLAY": display})
    try:
        yield
    finally:
        viewer.terminate()
        viewer.wait()


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


def _steps_per_second(client: tandem.SharedMemoryClient, pair: int) -> float:
    start = time.perf_counter()
    Search(client, seed=pair).iterate()
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
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--page", action="store_true", help="watch by tandem-view's page in Chromium")
    parser.add_argument("--shared", action="store_true", help="leave the threads to the system")
    options = parser.parse_args(arguments)
    if options.pairs < 2:
        parser.error(f"--pairs: expected two or more, found {options.pairs}")
    if len(os.sched_getaffinity(0)) < 2 and not options.shared:
        parser.error("expected two cores, found one; --shared measures on it")
    return options


def main() -> None:
    """Measures, and prints the difference with its interval."""
    options = _parse()
    cores = sorted(os.sched_getaffinity(0))
    of_frames = ",".join(map(str, cores if options.shared else cores[1:2]))
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
            ratios, rates, frames, watched_secs = [], [], 0, 0.0
            for pair in range(options.pairs + 1):
                rate: dict[bool, float] = {}
                for watched in (False, True) if pair % 2 else (True, False):
                    if not watched:
                        rate[watched] = _steps_per_second(client, pair)
                        continue
                    before = witness.head
                    client.reset(seed=0)
                    watching = _page(engine.name, of_frames) if options.page else None
                    with watching or _viewer(engine.name, display, of_frames):
                        while witness.head < before + 3:  # until the window shows frames
                            client.step(client.actions)
                        before, start = witness.head, time.perf_counter()
                        rate[watched] = _steps_per_second(client, pair)
                        if pair:
                            frames += witness.head - before
                            watched_secs += time.perf_counter() - start
                if pair:  # the first pair, a warm-up, loads the renderer
                    ratios.append(rate[True] / rate[False])
                    rates.append(rate[False])
                    print(f"pair {pair:3d} of {options.pairs}: {100 * (ratios[-1] - 1):+.2f} %", flush=True)
    low, high = _interval(ratios)
    where = "the page" if options.page else "the viewer's window"
    print(
        f"\n{TASK}, {options.num_envs} environments, four of {options.frames} in {where} at "
        f"{frames / watched_secs:.0f} frames/s, {options.pairs} pairs\n"
        f"  training steps/s, unwatched   {np.median(rates):,.0f} ({min(rates):,.0f} .. {max(rates):,.0f})\n"
        f"  watched, of that              {np.median(ratios):.4f} ({min(ratios):.4f} .. {max(ratios):.4f})\n"
        f"  the difference, mean          {100 * (np.mean(ratios) - 1):+.2f} % "
        f"(95 %: {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
    )


if __name__ == "__main__":
    main()
