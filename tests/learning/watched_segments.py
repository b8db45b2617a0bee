"""Runs a recipe of client_py/examples/frameworks, and switches a viewer on and off between its updates.

watched_segments.py RECIPE JSON: `updates` (steps of the vector between two switches), `pairs` (0: never a viewer),
`out` (a file), `arguments` (of the recipe). A segment is one rollout and the update after it. Writes the segments'
times, and a digest of all results of the environments: equal digests are equal learning curves.
"""

import hashlib
import json
import random
import runpy
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tandem
from tandem.environments.client_vector import ClientVectorEnv


class Viewer:
    """A process that reads frames at 60 Hz while it is switched on."""

    def __init__(self, name: str) -> None:
        """Starts it, switched off."""
        command = [sys.executable, __file__, "--view", name]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, text=True, bufsize=1, **pipes)
        self.switch(False)

    def switch(self, on: bool) -> None:
        """Attaches it to the region, or detaches it; returns when it has done so."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("on\n" if on else "off\n")
        assert self._process.stdout.readline() == "done\n"

    def close(self) -> int:
        """Ends it, and returns the number of frames that it read."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        frames = int(self._process.stdout.read())
        self._process.wait()
        return frames


def view(name: str) -> None:
    """Is the viewer's program: reads "on" and "off" from standard input, and frames of the region in between."""
    reader, frames = None, 0
    due = time.monotonic()
    while True:
        ready = select.select([sys.stdin], [], [], None if reader is None else max(due - time.monotonic(), 0.0))[0]
        if ready:
            line = sys.stdin.readline()
            if reader is not None:
                reader.close()
                reader = None
            if not line:
                break
            if line == "on\n":
                reader, due = tandem.FastLaneReader.attach(name), time.monotonic()
            print("done", flush=True)
        elif reader is not None:
            frames += reader.next_frame() is not None
            due += 1 / 60
    print(frames)


class Segments:
    """The clocks, the digest, and the order of segments with and without the viewer.

    Attributes:
      results: One list for each segment: watched, wall seconds, CPU seconds of this process, of the engine.
    """

    def __init__(self, updates: int, pairs: int) -> None:
        """Takes the steps of a segment, and the number of pairs."""
        self._updates, self._pairs = updates, pairs
        self._steps, self._engine_pid = 0, 0
        self._viewer: Viewer | None = None
        self._order = random.Random(0)
        self._second: bool | None = None
        self._on = False
        self._began: tuple[float, ...] | None = None
        self.results: list[list[float]] = []
        self.digest = hashlib.sha256()

    def attach(self, name: str, engine_pid: int) -> None:
        """Takes a region: that of the training, which is the last one that is attached before the first step."""
        self._region, self._engine_pid = name, engine_pid

    def step(self) -> None:
        """Counts a step of the vector, and switches between two segments."""
        if self._steps % self._updates == 0 and self._pairs:
            self._end_segment()
            self._begin_segment()
        self._steps += 1

    def _clocks(self) -> tuple[float, ...]:
        # The kernel's clock of another process's CPU time, in nanoseconds.
        engine = time.clock_gettime((~self._engine_pid << 3) | 2)
        return time.monotonic(), time.process_time(), engine

    def _end_segment(self) -> None:
        if self._began is not None:
            now = self._clocks()
            self.results.append([self._on, *(end - begin for end, begin in zip(now, self._began, strict=True))])

    def _begin_segment(self) -> None:
        if self._viewer is None:
            self._viewer = Viewer(self._region)
        if self._second is None:
            self._on = self._order.random() < 0.5
            self._second = not self._on
        else:
            self._on, self._second = self._second, None
        self._viewer.switch(self._on)
        self._began = self._clocks()

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
        return self._noted(self._stepper.step(actions))

    def send(self, actions: Any) -> None:
        self._segments.step()
        self._stepper.send(actions)

    def send_chosen(self, ids: Any) -> None:
        self._segments.step()
        self._stepper.send_chosen(ids)

    def recv(self, timeout: Any) -> Any:
        return self._noted(self._stepper.recv(timeout))

    def _noted(self, results: Any) -> Any:
        for array in results[1:4]:
            self._segments.digest.update(np.ascontiguousarray(array).tobytes())
        return results


def main() -> None:
    """Runs the recipe."""
    if sys.argv[1] == "--view":
        view(sys.argv[2])
        return
    recipe, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
    segments = Segments(asked["updates"], asked["pairs"])
    attach = ClientVectorEnv._attach

    def attach_and_count(self: ClientVectorEnv, client: Any) -> None:
        attach(self, client)
        segments.attach(client.name, client.engine_pid)
        self._stepper = _Stepper(self._stepper, segments)  # type: ignore[assignment]

    make_vec = tandem.make_vec

    def make_visible(*arguments: Any, **options: Any) -> Any:
        return make_vec(*arguments, **options, frames="320x240", threads=1)

    ClientVectorEnv._attach = attach_and_count  # type: ignore[method-assign]
    tandem.make_vec = make_visible
    sys.argv = [str(recipe), *asked["arguments"]]
    runpy.run_path(str(recipe), run_name="__main__")
    frames = segments.close()
    found = {"segments": segments.results, "digest": segments.digest.hexdigest(), "frames": frames}
    Path(asked["out"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
