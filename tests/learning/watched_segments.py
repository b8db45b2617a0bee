"""Runs a recipe of client_py/examples/frameworks, and measures segments of its training: each a rollout and its update.

watched_segments.py RECIPE JSON, with the fields of `recipe_runs.Asked`. With more than one condition it measures every
second segment, and switches a viewer before each of the others, in random order within each round. The training waits a
quarter of a second for the switch; what its core has to load again afterwards is not a cost of frames. Writes the
segments' times, and a digest of all rewards and ends of episodes: equal digests are equal learning curves.
"""

import hashlib
import importlib
import json
import os
import random
import runpy
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

import tandem
from tandem.environments.client_vector import ClientVectorEnv
from tests.frames.cores import place_engine
from tests.learning.own_environments import take_own

_HZ = 60
_BUSY_SECS = 0.0006  # what an engine needs for a frame of 320x240
# An engine looks five times a second whether a viewer is attached.
_SWITCH_SECS = 0.25
_WATCHDOG_SECS = 30.0


class Viewer:
    """A process that is detached ("off"), or attached ("published"), or attached and reads at 60 Hz ("watched").

    An engine draws and publishes frames while a viewer is attached. "busy": it is detached, and computes as often
    and as long as an engine that draws, without touching memory.
    """

    def __init__(self, name: str, core: int | None) -> None:
        """Starts it, switched off; `core` is its core."""
        command = [sys.executable, __file__, "--view", name]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, text=True, bufsize=1, **pipes)
        if core is not None:
            os.sched_setaffinity(self._process.pid, {core})
        self.switch("off")

    def switch(self, condition: str) -> None:
        """Returns when the engine draws, or draws no more."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{condition}\n")
        answer = self._process.stdout.readline()
        if answer != "done\n":
            raise RuntimeError(f"viewer: expected frames within {_WATCHDOG_SECS:.0f} s, found none")

    def close(self) -> int:
        """Ends it, and returns the number of frames that it read."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        frames = int(self._process.stdout.read())
        self._process.wait()
        return frames


def view(name: str) -> None:
    """Is the viewer's program: reads conditions from standard input, and frames of the region in between."""
    reader: tandem.FastLaneReader | None = None
    condition, frames, due = "off", 0, 0.0
    while True:
        waits = condition in ("off", "published")
        if not select.select([sys.stdin], [], [], None if waits else max(due - time.monotonic(), 0.0))[0]:
            if reader is not None:
                frames += reader.next_frame() is not None
            else:
                end = time.monotonic() + _BUSY_SECS
                while time.monotonic() < end:
                    pass
            due += 1 / _HZ
            continue
        if reader is not None:
            reader.close()
        condition = sys.stdin.readline().strip()
        if not condition:
            break
        end = time.monotonic() + _SWITCH_SECS
        reader = None
        if condition in ("published", "watched"):
            reader = tandem.FastLaneReader.attach(name)
            reader.next_frame()  # may be an old one
            while reader.next_frame() is None:
                if time.monotonic() > end + _WATCHDOG_SECS:
                    sys.exit("no frames")
                time.sleep(0.005)
        time.sleep(max(end - time.monotonic(), 0.0))  # equally long in each condition
        due = time.monotonic()
        print("done", flush=True)
    print(frames)


class Segments:
    """The clocks, the digest, and the order of the segments.

    Attributes:
      results: One list for each segment: condition, wall seconds, CPU seconds of this process, of the engine, and the
        wall seconds in Tandem's calls.
    """

    def __init__(self, count: int, updates: int, conditions: list[str], cores: list[int], seed: int) -> None:
        """Takes the number of segments, the vector's steps in each, conditions, and the cores of steps and frames.

        The order of the conditions depends on the seed: with one order for all trainings, what else is common to them,
        such as the lengths of episodes, would not average out.
        """
        self._count, self._updates, self._conditions, self._cores = count, updates, conditions, cores
        self._steps = 0
        self._client: Any = None
        self._viewer: Viewer | None = None
        self._order = random.Random(seed)
        self._left: list[str] = []  # of this round
        self._condition = conditions[0] if conditions else ""
        self._began: tuple[float, ...] | None = None
        self._called = 0.0  # wall seconds in Tandem's calls
        self.results: list[list[Any]] = []
        self.digest = hashlib.sha256()

    def attach(self, client: Any) -> None:
        """Takes a client: that of the training is the last one before the first step."""
        if not self._steps:
            self._client = client

    def step(self) -> None:
        """Counts a step of the vector, and switches between two segments."""
        if self._steps % self._updates == 0 and self._conditions:
            self._end_segment()
            segment = self._steps // self._updates
            if segment >= self._count:
                if self._viewer is not None:
                    self._viewer.switch("off")
            elif len(self._conditions) == 1 or segment % 2:
                self._began = self._clocks()
            else:
                self._switch()
        self._steps += 1

    def timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Calls Tandem, and adds the time that it takes."""
        began = time.monotonic()
        result = call(*arguments)
        self._called += time.monotonic() - began
        return result

    def note(self, arrays: Any) -> None:
        """Adds results of a step to the digest."""
        for array in arrays:
            self.digest.update(np.ascontiguousarray(array).tobytes())

    def _clocks(self) -> tuple[float, ...]:
        # The kernel's clock of another process's CPU time, in nanoseconds.
        engine = time.clock_gettime((~self._client.engine_pid << 3) | 2) if self._viewer else 0.0
        return time.monotonic(), time.process_time(), engine, self._called

    def _end_segment(self) -> None:
        if self._began is not None:
            now = self._clocks()
            self.results.append([self._condition, *(end - begin for end, begin in zip(now, self._began, strict=True))])
            self._began = None

    def _switch(self) -> None:
        if self._viewer is None:
            if self._cores:
                place_engine(self._client.engine_pid, steps=self._cores[0], frames=self._cores[1])
            self._viewer = Viewer(self._client.name, self._cores[1] if self._cores else None)
        if not self._left:
            self._left = self._order.sample(self._conditions, len(self._conditions))
        self._condition = self._left.pop()
        self._viewer.switch(self._condition)

    def close(self) -> int:
        """Ends the viewer; returns the number of frames that it read."""
        return 0 if self._viewer is None else self._viewer.close()


class _Stepper:
    """Counts the steps of the binding's stepper."""

    def __init__(self, stepper: Any, segments: Segments) -> None:
        self._stepper, self._segments = stepper, segments

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stepper, name)

    def step(self, actions: Any) -> Any:
        self._segments.step()
        return self._noted(self._segments.timed(self._stepper.step, actions))

    def send(self, actions: Any) -> None:
        self._segments.step()
        self._segments.timed(self._stepper.send, actions)

    def send_chosen(self, ids: Any) -> None:
        self._segments.step()
        self._segments.timed(self._stepper.send_chosen, ids)

    def recv(self, timeout: Any) -> Any:
        return self._noted(self._segments.timed(self._stepper.recv, timeout))

    def _noted(self, results: Any) -> Any:
        self._segments.note(results[1:4])
        return results


def main() -> None:
    """Runs the recipe."""
    if sys.argv[1] == "--view":
        view(sys.argv[2])
        return
    recipe, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
    segments = Segments(asked["segments"], asked["updates"], asked["conditions"], asked["cores"], asked["seed"])
    if asked["environments"] == "own":
        take_own(recipe.stem.removeprefix("train_"), segments.step)
    else:
        attach, make_vec = ClientVectorEnv._attach, cast(Any, tandem.make_vec)

        def attach_and_count(self: ClientVectorEnv, client: Any) -> None:
            attach(self, client)
            segments.attach(client)
            self._stepper = _Stepper(self._stepper, segments)  # type: ignore[assignment]

        def make(*arguments: Any, **options: Any) -> Any:
            return make_vec(*arguments, **options, **asked["options"])

        ClientVectorEnv._attach = attach_and_count  # type: ignore[method-assign]
        tandem.make_vec = make
        if recipe.stem == "train_rllib":  # its environments are made by register_env
            importlib.import_module("tandem.ray.rllib").make_vec = make  # type: ignore[attr-defined]
    sys.argv = [str(recipe), *asked["arguments"]]
    runpy.run_path(str(recipe), run_name="__main__")
    frames = segments.close()
    found = {"segments": segments.results, "digest": segments.digest.hexdigest(), "frames": frames}
    Path(asked["out"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
