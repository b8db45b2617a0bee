"""`publish_frames`: what is published, when, and that nothing is rendered without a viewer."""

import json
import os
import subprocess
import sys
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import tandem
from tandem.fastlane import publishing
from tandem.testing.shared_memory import with_shared_memory
from tools.testing import pytest_main


class Counting(gymnasium.Env[Any, Any]):
    """Pays 1 a step, ends after `length`, and renders its step number; counts the renders."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 5, render_mode: str | None = "rgb_array", shape: Any = (6, 8, 3)) -> None:
        """Makes it."""
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"]}
        self.length, self.shape = length, shape
        self.steps = self.renders = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts again from 0."""
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Counts."""
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, self.steps >= self.length, False, {}

    def render(self) -> Any:
        """Counts."""
        self.renders += 1
        if isinstance(self.shape, str):
            raise RuntimeError(self.shape)
        return np.full(self.shape, self.steps % 256, np.uint8)


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        """At some time."""
        self.now = 1000.0

    def monotonic(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def run_id() -> str:
    """One that no other test has."""
    return f"publish test {uuid.uuid4().hex}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """The time that decides when to publish."""
    stopped = Clock()
    monkeypatch.setattr(publishing, "time", stopped)
    yield stopped


def newest(run_id: str) -> tandem.FastLaneFrame:
    """What a viewer that just came sees."""
    with tandem.FastLaneReader.attach(run_id) as reader:
        frame = reader.latest_frame()
    assert frame is not None
    return frame


def test_frames_and_numbers_arrive(run_id: str, clock: Clock) -> None:
    """Pixels of the step, its reward, the mean return of ended episodes, steps a second, and metadata."""
    env = tandem.publish_frames(Counting(length=4), run_id, unseen_hz=8)
    env.reset()
    first = newest(run_id)
    assert first.view.shape == (6, 8, 3) and (first.view == 0).all()
    for _ in range(7):
        clock.now += 1 / 32
        results = env.step(0)
        if results[2]:
            env.reset()
    frame = newest(run_id)
    assert (frame.view == 4).all()  # an eighth of a second after the first
    assert frame.metrics == tandem.FastLaneMetrics(last_reward=1.0, rolling_return=4.0, step_rate_hz=32.0)
    assert json.loads(frame.metadata or b"") == {"step": 4, "envs": [0]}
    env.close()
    with pytest.raises(FileNotFoundError):
        tandem.FastLaneReader.attach(run_id)


def test_nothing_is_rendered_without_a_viewer(run_id: str, clock: Clock) -> None:
    """However long it runs; and a reader that comes is served within a second, at max_hz."""
    inner = Counting(length=10**9)
    env = tandem.publish_frames(inner, run_id, max_hz=10, unseen_hz=0)
    env.reset()
    for _ in range(10_000):
        clock.now += 0.01
        env.step(0)
    assert inner.renders == 0
    env.close()

    env = tandem.publish_frames(inner, run_id, max_hz=10, unseen_hz=0)
    with tandem.FastLaneReader.attach(run_id) as early:
        clock.now += 1.0
        env.step(0)
        assert inner.renders == 1
        # The size is known now: the reader goes over to the segment that has it.
        assert early.is_invalidated() and early.is_replaced()
    with tandem.FastLaneReader.attach(run_id) as reader:
        assert reader.next_frame() is not None
        for _ in range(100):  # a second
            clock.now += 0.01
            env.step(0)
            _ = reader.next_frame()
    assert 9 <= inner.renders <= 12
    env.close()


def test_the_unseen_rate_is_kept(run_id: str, clock: Clock) -> None:
    """Readers that leave no trace get that many."""
    inner = Counting(length=10**9)
    env = tandem.publish_frames(inner, run_id, max_hz=60, unseen_hz=2)
    env.reset()
    for _ in range(1000):  # ten seconds
        clock.now += 0.01
        env.step(0)
    assert 19 <= inner.renders <= 22
    env.close()


def vector(num_envs: int = 6) -> SyncVectorEnv:
    """Environments that end after 2, 3, ... steps."""
    return SyncVectorEnv(
        [lambda i=i: Counting(length=2 + i) for i in range(num_envs)],  # type: ignore[misc]
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def test_a_vectors_frames_are_tiled(run_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four by default, GRID_LIMIT of them, or the one of SLOT; or nothing at all."""
    envs = tandem.publish_frames(vector(), run_id, unseen_hz=1)
    envs.reset()
    frame = newest(run_id)
    assert frame.view.shape == (12, 16, 3)
    assert json.loads(frame.metadata or b"")["envs"] == [0, 1, 2, 3]
    clock.now += 2
    for _ in range(2):
        envs.step(np.zeros(6, np.int64))
        clock.now += 2
    frame = newest(run_id)
    assert frame.view[::6, ::8, 0].tolist() == [[0, 2], [2, 2]]  # the first has begun again
    assert frame.metrics.last_reward == 1.0
    assert frame.metrics.rolling_return == 2.0  # the one that has ended
    envs.close()

    monkeypatch.setenv("MOSAIC_FASTLANE_GRID_LIMIT", "6")
    envs = tandem.publish_frames(vector(), run_id)
    envs.reset()
    assert newest(run_id).view.shape == (18, 16, 3)
    envs.close()

    monkeypatch.setenv("GYM_GUI_FASTLANE_VIDEO_MODE", "single")
    monkeypatch.setenv("MOSAIC_FASTLANE_SLOT", "1")
    envs = tandem.publish_frames(vector(), run_id, unseen_hz=10)
    envs.reset()
    for _ in range(4):
        clock.now += 0.2
        envs.step(np.zeros(6, np.int64))
    frame = newest(run_id)
    assert frame.view.shape == (6, 8, 3) and (frame.view == 1).all()
    assert frame.metrics.rolling_return == 3.0 and json.loads(frame.metadata or b"")["envs"] == [1]
    envs.close()

    monkeypatch.setenv("MOSAIC_FASTLANE_SLOT", "6")
    with pytest.raises(ValueError, match="SLOT"):
        tandem.publish_frames(vector(), run_id)

    monkeypatch.setenv("MOSAIC_FASTLANE_VIDEO_MODE", "off")
    envs = tandem.publish_frames(vector(), run_id)
    envs.reset()
    envs.step(np.zeros(6, np.int64))
    with pytest.raises(FileNotFoundError):
        tandem.FastLaneReader.attach(run_id)
    envs.close()


def test_a_reset_mask_ends_only_its_episodes(run_id: str, clock: Clock) -> None:
    """The others' returns go on."""
    envs = tandem.publish_frames(vector(2), run_id, unseen_hz=10)
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    envs.reset(options={"reset_mask": np.array([True, False])})
    clock.now += 1
    envs.step(np.zeros(2, np.int64))
    assert newest(run_id).metrics.rolling_return == 1.5  # running: 1 and 2
    envs.close()


@pytest.fixture
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps Gymnasium's pygame, which draws into memory, from looking for one."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@pytest.mark.usefixtures("no_display")
@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_the_wrapped_environment_is_the_same_otherwise(task: str, run_id: str, clock: Clock) -> None:
    """Results, spaces, attributes and pictures come through; what is published is what Gymnasium draws."""
    plain = gymnasium.make(task, render_mode="rgb_array")
    env = tandem.publish_frames(gymnasium.make(task, render_mode="rgb_array"), run_id)
    assert env.observation_space == plain.observation_space and env.render_mode == "rgb_array"
    assert np.array_equal(plain.reset(seed=3)[0], env.reset(seed=3)[0])
    plain.action_space.seed(3)
    pictures = []
    for _ in range(8):
        clock.now += 1
        action = plain.action_space.sample()
        for mine, theirs in zip(env.step(action)[:4], plain.step(action)[:4], strict=True):
            assert np.array_equal(mine, theirs)
        pictures.append(np.asarray(plain.render()))
        assert np.array_equal(env.render(), pictures[-1])
        assert np.array_equal(newest(run_id).view, pictures[-1])
    assert (pictures[-1] != pictures[0]).any()
    assert type(env.unwrapped) is type(plain.unwrapped)
    env.close()
    plain.close()


@pytest.mark.usefixtures("no_display")
@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_frames_of_gymnasiums_vectors_are_published(mode: str, run_id: str, clock: Clock) -> None:
    """The first four, tiled."""
    inner = gymnasium.make_vec("CartPole-v1", 5, vectorization_mode=mode, render_mode="rgb_array")
    envs = tandem.publish_frames(inner, run_id)
    envs.reset(seed=3)
    for _ in range(3):
        clock.now += 1
        envs.step(np.ones(5, np.int64))
        frame = newest(run_id).view
        pictures: Any = inner.render()
        assert frame.shape == (800, 1200, 3)
        assert np.array_equal(frame, tandem.tile_frames(list(pictures[:4])))
        assert (pictures[0] != pictures[1]).any()
    envs.close()


@pytest.mark.parametrize(
    ("env", "options", "said"),
    [
        (Counting(render_mode=None), {}, "render_mode"),
        (Counting(), {"max_hz": 0}, "max_hz"),
        (Counting(), {"max_hz": float("nan")}, "max_hz"),
        (Counting(), {"unseen_hz": -1}, "unseen_hz"),
        (Counting(), {"unseen_hz": "often"}, "unseen_hz"),
    ],
)
def test_invalid_values_are_refused_at_once(run_id: str, env: Any, options: dict[str, Any], said: str) -> None:
    """By name."""
    with pytest.raises(tandem.InvalidArgument, match=said):
        tandem.publish_frames(env, run_id, **options)


@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 1), (6, 0, 3)])
def test_invalid_frames_are_refused(run_id: str, shape: Any) -> None:
    """By what was found."""
    env = tandem.publish_frames(Counting(shape=shape), run_id)
    with pytest.raises(tandem.InvalidArgument, match="uint8"):
        env.reset()
    env.close()


def test_a_size_that_changes_makes_a_new_segment(run_id: str, clock: Clock) -> None:
    """Readers of the old one are told."""
    inner = Counting()
    env = tandem.publish_frames(inner, run_id, unseen_hz=10)
    env.reset()
    with tandem.FastLaneReader.attach(run_id) as reader:
        inner.shape = (2, 4, 4)
        clock.now += 1
        env.step(0)
        assert reader.is_invalidated() and reader.is_replaced()
    assert newest(run_id).view.shape == (2, 4, 4)
    env.close()


def test_a_live_runs_id_is_refused(run_id: str) -> None:
    """At once, not at the first frame."""
    with tandem.FastLaneWriter.create(run_id, tandem.FastLaneConfig(1, 1)):
        with pytest.raises(tandem.AlreadyAttached):
            tandem.publish_frames(Counting(), run_id)


def test_a_run_goes_on_while_another_has_its_id(run_id: str, clock: Clock) -> None:
    """It warns once, and is seen again when the other has ended."""
    inner = Counting()
    env = tandem.publish_frames(inner, run_id, unseen_hz=10)
    env.reset()
    for path in Path("/dev/shm").glob(f"*{run_id}*"):  # as a clean-up by hand does
        path.unlink()
    with tandem.FastLaneWriter.create(run_id, tandem.FastLaneConfig(1, 1)) as other:
        inner.shape = (2, 4, 4)  # which takes another segment
        clock.now += 1
        with pytest.warns(UserWarning, match=f"the run goes on.*{run_id}"):
            env.step(0)
        for _ in range(10):
            clock.now += 1
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                env.step(0)
        assert other.head == 0 and inner.renders == 2
    env.step(0)
    assert inner.renders == 2  # not before a second has passed
    clock.now += 1
    env.step(0)
    assert newest(run_id).view.shape == (2, 4, 4)
    env.close()


# As Counting, with a frame that fills a small /dev/shm; room is made half-way.
_IN_A_FULL_SHM = """
import subprocess, sys, time, warnings
import gymnasium, numpy, tandem

class Large(gymnasium.Env):
    render_mode = "rgb_array"
    observation_space = action_space = gymnasium.spaces.Discrete(2)
    def reset(self, seed=None, options=None): return 0, {}
    def step(self, action): return 0, 1.0, False, False, {}
    def render(self): return numpy.zeros((480, 640, 3), numpy.uint8)

def head():
    with tandem.FastLaneReader.attach("full") as reader:
        frame = reader.latest_frame()
        return 0 if frame is None else frame.number

env = tandem.publish_frames(Large(), "full", unseen_hz=1000)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    env.reset()
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        assert env.step(0)[1] == 1.0
assert len(told) == 1 and "the run goes on" in str(told[0].message) and "--shm-size" in str(told[0].message), told
try:
    head()
    raise AssertionError("expected no segment")
except tandem.NotReady:
    pass
subprocess.run(["mount", "-o", "remount,size=64m", "/dev/shm"], check=True)
until = time.monotonic() + 60
env.reset()
while time.monotonic() < until:
    env.step(0)
    try:
        if head() > 0:
            env.close()
            sys.exit()
    except tandem.NotReady:
        pass
raise AssertionError("there is room, but no frame")
"""


def test_a_run_goes_on_where_shared_memory_is_full() -> None:
    """It warns once, and is seen as soon as there is room."""
    command = [*with_shared_memory("-o size=1m"), sys.executable, "-c", _IN_A_FULL_SHM]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_a_forked_child_runs_on_unseen(run_id: str, clock: Clock) -> None:
    """It warns once; the parent is seen as before."""
    env = tandem.publish_frames(Counting(length=100), run_id, unseen_hz=10)
    env.reset()
    child = os.fork()
    if child == 0:
        code = 1
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(5):
                clock.now += 1
                env.step(0)
            env.close()
            code = 0 if len(told) == 1 and "forked" in str(told[0].message) else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (newest(run_id).view == 0).all()
    clock.now += 1
    env.step(0)
    assert (newest(run_id).view == 1).all()
    env.close()


@pytest.mark.parametrize("shape", ["nothing to draw with", (6, 8), (1, 20_000, 3)])
def test_failed_render_is_reported_each_time(run_id: str, clock: Clock, shape: Any) -> None:
    """In the same words, at every step at which a frame is due, while the run steps."""
    inner = Counting(length=100)
    env = tandem.publish_frames(inner, run_id, unseen_hz=10)
    env.reset()
    inner.shape = shape
    said = []
    for step in range(1, 5):
        clock.now += 1
        with pytest.raises((ValueError, RuntimeError)) as raised:
            env.step(0)
        said.append(str(raised.value))
        assert inner.steps == step
    assert said == said[:1] * 4
    env.close()


class Tiled(VectorEnv[Any, Any, Any]):
    """Renders one picture of all its environments."""

    num_envs = 2
    render_mode = "rgb_array"

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Nothing."""
        return np.zeros(2), {}

    def render(self) -> Any:
        """One frame."""
        return np.full((3, 5, 3), 7, np.uint8)


def test_a_tiled_frame_is_published_unchanged(run_id: str) -> None:
    """Engines may tile their own; then no environments are said to be in tiles, for viewers to cut it into."""
    env = tandem.publish_frames(Tiled(), run_id)
    env.reset()
    frame = newest(run_id)
    assert (frame.view == np.full((3, 5, 3), 7)).all()
    assert json.loads(frame.metadata or b"") == {"step": 0}
    env.close()


if __name__ == "__main__":
    pytest_main.run(__file__)
