"""CartPole-v1 for a training with or without published frames; records the results. Does not need torch."""

import argparse
import fcntl
import json
import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium

import tandem
from tests.interop.foreign_fast_lane import HEADER, segment_name

# Without publishing; published without a viewer; published with a viewer.
CONDITIONS = ("plain", "published", "watched")

_HEAD = 10  # index in the header's fields
_READERS_LOCK_BYTE = 48  # offset in a segment
_F_OFD_GETLK = 36  # Linux's number; Python's fcntl module has no name for it
_LOCK = struct.Struct("hhqqi4x")
_VIEWER_COMES_SECS = 60.0


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts steps and renders, and records episodes.

    Attributes:
      started: The training's start, by time.perf_counter.
      steps: The number of steps.
      renders: The number of calls of `render`.
      episodes: For each episode: steps at its end, its return, seconds at its end.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Wraps an environment."""
        super().__init__(env)
        self.started = 0.0
        self.steps = self.renders = 0
        self.episodes: list[tuple[int, float, float]] = []
        self._return = 0.0

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps the environment, and records an ended episode."""
        results = self.env.step(action)
        self.steps += 1
        self._return += float(results[1])
        if results[2] or results[3]:
            self.episodes.append((self.steps, self._return, time.perf_counter() - self.started))
            self._return = 0.0
        return results

    def render(self) -> Any:
        """Renders the environment, and counts the call."""
        self.renders += 1
        return self.env.render()


def _segment(run: str) -> Path:
    return Path("/dev/shm", segment_name(run))


def frames_published(run: str) -> int:
    """Returns the number of frames published in a run's segment."""
    with _segment(run).open("rb") as file:
        return int(HEADER.unpack(file.read(HEADER.size))[_HEAD])


def is_watched(run: str) -> bool:
    """Returns whether a process holds the readers' lock of a run's segment, without taking the lock."""
    with _segment(run).open("rb") as file:
        wanted = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _READERS_LOCK_BYTE, 1, 0)
        return bool(_LOCK.unpack(fcntl.fcntl(file, _F_OFD_GETLK, wanted))[0] != fcntl.F_UNLCK)


def _await_viewer(run: str) -> None:
    deadline = time.monotonic() + _VIEWER_COMES_SECS
    while not is_watched(run):
        if time.monotonic() > deadline:
            sys.exit(f"expected a viewer of {run} within {_VIEWER_COMES_SECS:.0f} s, found none; see the viewer's log")
        time.sleep(0.01)


def train(prepare: Callable[[gymnasium.Env[Any, Any], int], Callable[[int], object]]) -> None:
    """Runs a training program.

    Args:
      prepare: Makes an agent for an environment and a seed; returns the function that trains it for a number of
        steps. Only the training is measured.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--condition", choices=CONDITIONS, required=True)
    parser.add_argument("--run", required=True, help="id to publish under")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()

    os.environ["SDL_VIDEODRIVER"] = "dummy"  # pygame needs a display even if it draws only into memory
    recorded = Recorded(gymnasium.make("CartPole-v1", render_mode="rgb_array"))
    publishes, watched = asked.condition != "plain", asked.condition == "watched"
    env = tandem.publish_frames(recorded, asked.run) if publishes else recorded
    try:
        learn = prepare(env, asked.seed)
        if watched:
            _await_viewer(asked.run)
        recorded.started = time.perf_counter()
        learn(asked.steps)
        wall_secs = time.perf_counter() - recorded.started
        if watched:  # the first frame's size makes a new segment, to which the viewer may not yet be attached
            _await_viewer(asked.run)
        frames = frames_published(asked.run) if publishes else 0
    except KeyboardInterrupt:
        sys.exit("interrupted")
    finally:
        env.close()
    found = {
        "condition": asked.condition,
        "seed": asked.seed,
        "steps": recorded.steps,
        "wall_secs": wall_secs,
        "frames": frames,
        "renders": recorded.renders,
        "finished": True,
        "episodes": recorded.episodes,
    }
    scratch = asked.out.with_name(asked.out.name + ".new")
    scratch.write_text(json.dumps(found) + "\n", encoding="utf-8")
    scratch.replace(asked.out)
