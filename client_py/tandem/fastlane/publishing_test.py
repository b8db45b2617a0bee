"""`publish_frames`: content and times of frames; nothing is rendered without a reader."""

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


class Counting(gymnasium.Env[Any, Any]):
    """An environment with reward 1 for each step that renders its step number and counts its renders."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 5, render_mode: str | None = "rgb_array", shape: Any = (6, 8, 3)) -> None:
        """Sets the episode's length in steps and the frame's shape; a str as shape is the text of a render error."""
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"]}
        self.length, self.shape = length, shape
        self.steps = self.renders = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the step number to 0."""
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Increments the step number."""
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, self.steps >= self.length, False, {}

    def render(self) -> Any:
        """Increments the render count and returns a frame."""
        self.renders += 1
        if isinstance(self.shape, str):
            raise RuntimeError(self.shape)
        return np.full(self.shape, self.steps % 256, np.uint8)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        """Starts at 1000 s."""
        self.now = 1000.0

    def monotonic(self) -> float:
        """Returns the set time in seconds."""
        return self.now


@pytest.fixture
def run_id() -> str:
    """Makes a unique run id."""
    return f"publish test {uuid.uuid4().hex}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Replaces the clock that decides when to publish."""
    stopped = Clock()
    monkeypatch.setattr(publishing, "time", stopped)
    yield stopped


def newest(run_id: str) -> tandem.fastlane.FastLaneFrame:
    """Returns the newest frame, read by a new reader."""
    with tandem.FastLaneReader.attach(run_id) as reader:
        frame = reader.latest_frame()
    assert frame is not None
    return frame


def test_frames_and_numbers_arrive(run_id: str, clock: Clock) -> None:
    """A frame has the step's pixels, reward, mean return of ended episodes, step rate, and metadata."""
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
    assert (frame.view == 4).all()  # published 1/8 s after the first frame
    assert frame.metrics == tandem.fastlane.FastLaneMetrics(last_reward=1.0, rolling_return=4.0, step_rate_hz=32.0)
    tiles = {"envs": [0], "rows": 1, "columns": 1}
    assert json.loads(frame.metadata or b"") == {"step": 4, **tiles, "episodes": 1, "episode_length": 4.0}
    env.close()
    with pytest.raises(FileNotFoundError):
        tandem.FastLaneReader.attach(run_id)


def test_nothing_is_rendered_without_a_viewer(run_id: str, clock: Clock) -> None:
    """Without a reader 10,000 steps render nothing; a new reader gets a frame within a second, then max_hz."""
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
        #         # The frame's size is known now, so the reader must attach to the new segment.
        assert early.is_invalidated() and early.is_replaced()
    with tandem.FastLaneReader.attach(run_id) as reader:
        assert reader.next_frame() is not None
        for _ in range(100):  # one second
            clock.now += 0.01
            env.step(0)
            _ = reader.next_frame()
    assert 9 <= inner.renders <= 12
    env.close()


def test_the_unseen_rate_is_kept(run_id: str, clock: Clock) -> None:
    """With unseen_hz=2, frames are published twice a second for readers that cannot be detected."""
    inner = Counting(length=10**9)
    env = tandem.publish_frames(inner, run_id, max_hz=60, unseen_hz=2)
    env.reset()
    for _ in range(1000):  # ten seconds
        clock.now += 0.01
        env.step(0)
    assert 19 <= inner.renders <= 22
    env.close()


def vector(num_envs: int = 6) -> SyncVectorEnv:
    """Makes environments whose episodes end after 2, 3, ... steps."""
    return SyncVectorEnv(
        [lambda i=i: Counting(length=2 + i) for i in range(num_envs)],  # type: ignore[misc]
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def test_a_vectors_frames_are_tiled(run_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiles show 4 environments by default, GRID_LIMIT ones, or the one of SLOT; mode "off" publishes nothing."""
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
    assert frame.view[::6, ::8, 0].tolist() == [[0, 2], [2, 2]]  # environment 0 was reset
    assert frame.metrics.last_reward == 1.0
    assert frame.metrics.rolling_return == 2.0  # of the one ended episode
    envs.close()

    monkeypatch.setenv("MOSAIC_FASTLANE_GRID_LIMIT", "6")
    with pytest.raises(ValueError, match="run_id: expected a name, found None"):
        tandem.publish_frames(vector())
    monkeypatch.setenv("TANDEM_RUN_ID", run_id)  # of the daemon
    envs = tandem.publish_frames(vector())
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


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_lengths_are_those_of_the_episodes(run_id: str, clock: Clock, mode: AutoresetMode) -> None:
    """The step that resets an environment (NEXT_STEP) is not counted; before the first end there is no length."""
    inner = SyncVectorEnv(
        [lambda i=i: Counting(length=2 + i) for i in range(2)],  # type: ignore[misc]
        autoreset_mode=mode,
    )
    envs = tandem.publish_frames(inner, run_id, unseen_hz=10)
    envs.reset()
    assert "episode_length" not in json.loads(newest(run_id).metadata or b"")
    for _ in range(12):
        clock.now += 1
        envs.step(np.zeros(2, np.int64))
    ended = {AutoresetMode.SAME_STEP: [2] * 6 + [3] * 4, AutoresetMode.NEXT_STEP: [2] * 4 + [3] * 3}[mode]
    metadata = json.loads(newest(run_id).metadata or b"")
    assert metadata["episodes"] == len(ended)
    assert metadata["episode_length"] == sum(ended) / len(ended)
    envs.close()


def test_a_reset_mask_ends_only_its_episodes(run_id: str, clock: Clock) -> None:
    """The episodes of the other environments continue, and so do their returns."""
    envs = tandem.publish_frames(vector(2), run_id, unseen_hz=10)
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    envs.reset(options={"reset_mask": np.array([True, False])})
    clock.now += 1
    envs.step(np.zeros(2, np.int64))
    assert newest(run_id).metrics.rolling_return == 1.5  # returns of running episodes: 1 and 2
    envs.close()


@pytest.fixture
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets SDL's dummy video driver, so that pygame needs no display."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@pytest.mark.usefixtures("no_display")
@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_the_wrapped_environment_has_equal_results(task: str, run_id: str, clock: Clock) -> None:
    """Results, spaces, attributes and images equal the plain environment's; published frames equal its images."""
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
@pytest.mark.parametrize("mode", ["sync", "vector_entry_point", "workers"])
def test_frames_of_vectors_are_published(mode: str, run_id: str, clock: Clock) -> None:
    """The frame has the first four environments' images as tiles, also of environments in worker processes."""
    inner: Any
    if mode == "workers":
        inner = tandem.make_vec("CartPole-v1", 5, backend="python", num_workers=2, render_mode="rgb_array")
    else:
        inner = gymnasium.make_vec("CartPole-v1", 5, vectorization_mode=mode, render_mode="rgb_array")
    envs = tandem.publish_frames(inner, run_id)
    envs.reset(seed=3)
    for _ in range(3):
        clock.now += 1
        envs.step(np.ones(5, np.int64))
        frame = newest(run_id).view
        pictures: Any = inner.render()
        assert frame.shape == (800, 1200, 3)
        assert np.array_equal(frame, tandem.fastlane.tile_frames(list(pictures[:4])))
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
    """The error has the argument's name."""
    with pytest.raises(tandem.InvalidArgument, match=said):
        tandem.publish_frames(env, run_id, **options)


@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 1), (6, 0, 3)])
def test_invalid_frames_are_refused(run_id: str, shape: Any) -> None:
    """The error has the expected dtype."""
    env = tandem.publish_frames(Counting(shape=shape), run_id)
    with pytest.raises(tandem.InvalidArgument, match="uint8"):
        env.reset()
    env.close()


def test_a_new_frame_size_creates_a_new_segment(run_id: str, clock: Clock) -> None:
    """Readers of the old segment see that it is invalidated and replaced."""
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
    """`publish_frames` itself raises, not the first frame."""
    with tandem.fastlane.FastLaneWriter.create(run_id, tandem.fastlane.FastLaneConfig(1, 1)):
        with pytest.raises(tandem.AlreadyAttached):
            tandem.publish_frames(Counting(), run_id)


def test_a_run_continues_without_frames_while_another_writer_has_its_id(run_id: str, clock: Clock) -> None:
    """One warning is given; frames are published again after the other writer has closed."""
    inner = Counting()
    env = tandem.publish_frames(inner, run_id, unseen_hz=10)
    env.reset()
    for path in Path("/dev/shm").glob(f"*{run_id}*"):  # a user may remove files
        path.unlink()
    with tandem.fastlane.FastLaneWriter.create(run_id, tandem.fastlane.FastLaneConfig(1, 1)) as other:
        inner.shape = (2, 4, 4)  # requires a new segment
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
    assert inner.renders == 2  # a retry comes at most once a second
    clock.now += 1
    env.step(0)
    assert newest(run_id).view.shape == (2, 4, 4)
    env.close()


# An environment whose frame fills a small /dev/shm; later the test enlarges /dev/shm.
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
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    env.reset()
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        assert env.step(0)[1] == 1.0
assert len(found) == 1 and "the run goes on" in str(found[0].message) and "--shm-size" in str(found[0].message), found
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


def test_a_run_continues_without_frames_while_shared_memory_is_full() -> None:
    """One warning is given; frames are published when there is room."""
    command = [*with_shared_memory("-o size=1m"), sys.executable, "-c", _IN_A_FULL_SHM]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_a_forked_child_continues_without_frames(run_id: str, clock: Clock) -> None:
    """The child gets one warning; the parent process still publishes."""
    env = tandem.publish_frames(Counting(length=100), run_id, unseen_hz=10)
    env.reset()
    child = os.fork()
    if child == 0:
        code = 1
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(5):
                clock.now += 1
                env.step(0)
            env.close()
            code = 0 if len(found) == 1 and "forked" in str(found[0].message) else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (newest(run_id).view == 0).all()
    clock.now += 1
    env.step(0)
    assert (newest(run_id).view == 1).all()
    env.close()


@pytest.mark.parametrize("shape", ["nothing to draw with", (6, 8), (1, 20_000, 3)])
def test_failed_render_is_reported_each_time(run_id: str, clock: Clock, shape: Any) -> None:
    """Each step with a due frame raises the same error, and the environment has made the step."""
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
    """A vector environment that renders one image of all its environments."""

    num_envs = 2
    render_mode = "rgb_array"

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Returns zero observations."""
        return np.zeros(2), {}

    def render(self) -> Any:
        """Returns one frame."""
        return np.full((3, 5, 3), 7, np.uint8)


def test_a_tiled_frame_is_published_unchanged(run_id: str) -> None:
    """The metadata has no list of environments, so that a viewer does not cut the frame into tiles."""
    env = tandem.publish_frames(Tiled(), run_id)
    env.reset()
    frame = newest(run_id)
    assert (frame.view == np.full((3, 5, 3), 7)).all()
    assert json.loads(frame.metadata or b"") == {"step": 0, "episodes": 0}
    env.close()
