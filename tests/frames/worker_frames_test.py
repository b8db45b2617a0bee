"""Frames of environments in Python, read beside the run as a viewer reads them."""

import os
import pickle
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tests.frames.frame_watcher import FrameWatcher

_WATCHDOG_SECS = 60
_NUM_ENVS, _LENGTH = 6, 20


class Colored(gymnasium.Env[Any, Any]):
    """Draws the number of its steps in red and its seed in green; its reward is its number of steps.

    The action 1 makes the next image an error; 2 kills the process.
    """

    observation_space = spaces.Box(0, 1e6, (1,), np.float64)
    action_space = spaces.Discrete(3)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012, as Gymnasium declares it

    def __init__(self, render_mode: str | None = "rgb_array") -> None:
        """Makes an environment."""
        self.render_mode = render_mode
        self.renders = self.steps = self.seed = self.last = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Sets the number of steps to 0."""
        self.seed = self.seed if seed is None else seed
        self.steps = self.last = 0
        return np.zeros(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Ends the episode after some steps."""
        if action == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        self.last = action
        self.steps += 1
        return np.array([self.steps], np.float64), float(self.steps), False, self.steps == _LENGTH, {}

    def render(self) -> Any:
        """Returns the image."""
        self.renders += 1
        if self.last == 1:
            raise ValueError("the lamp broke")
        return np.full((6, 8, 3), (self.steps, self.seed, 200), np.uint8)


def _started(**options: Any) -> Any:
    options = {"num_workers": 3, "frames": (8, 6), **options}
    envs = tandem.make_vec(Colored, _NUM_ENVS, **options)
    envs.reset(seed=10)
    return envs


def _step_until(envs: Any, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WATCHDOG_SECS
    while not done():
        assert time.monotonic() < deadline
        envs.step(np.zeros(_NUM_ENVS, np.int64))


def test_frames_are_drawn_only_while_a_reader_is_present() -> None:
    """Only the shown environments are drawn."""
    with closing(_started()) as envs, FrameWatcher(envs.client.name, is_reader=False) as witness:
        until = time.monotonic() + 1  # five times the interval at which the supervisor looks for readers
        _step_until(envs, lambda: time.monotonic() > until)
        assert witness.head == 0 and sum(envs.get_attr("renders")) == 0
        with FrameWatcher(envs.client.name) as watcher:
            _step_until(envs, lambda: watcher.head > 5)
        renders = envs.get_attr("renders")
        assert min(renders[:4]) >= 5 and renders[4:] == (0, 0)


def test_a_frame_has_images_of_one_state_and_its_metadata() -> None:
    """All images, the reward, the return and the episodes belong to the same exchange."""
    frames = tandem.FrameOptions((8, 6), envs=[5, 0, 2], hz=500)
    with closing(_started(frames=frames)) as envs, FrameWatcher(envs.client.name) as watcher:
        seen = last = misread = 0
        rate = 0.0
        deadline = time.monotonic() + _WATCHDOG_SECS
        while seen < 20 or rate <= 0:
            assert time.monotonic() < deadline
            envs.step(np.zeros(_NUM_ENVS, np.int64))
            frame = watcher.latest()
            if frame is None or frame.number == last:
                continue
            last, seen, rate = frame.number, seen + 1, frame.step_rate_hz
            assert frame.pixels.shape == (12, 16, 3)
            assert (frame.metadata["envs"], frame.metadata["rows"], frame.metadata["columns"]) == ([5, 0, 2], 2, 2)
            tiles = frame.pixels[::6, ::8].reshape(4, 3)[:3]
            assert tiles[:, 1].tolist() == [15, 10, 12] and (tiles[:, 2] == 200).all()
            assert not frame.pixels[6:, 8:].any()  # the fourth place is empty
            steps = int(tiles[0, 0])
            assert (tiles[:, 0] == steps).all()
            # Exchange 1 was the reset; each episode is followed by another one.
            assert steps == (frame.metadata["step"] - 1) % (_LENGTH + 1)
            episodes = frame.metadata["episodes"]
            assert episodes % _NUM_ENVS == 0
            assert frame.metadata.get("episode_length") == (_LENGTH if episodes else None)
            rolling = _LENGTH * (_LENGTH + 1) / 2 if episodes else steps * (steps + 1) / 2
            # The ring's metrics are those of its newest frame or, just before the publish, of the next one.
            misread += (frame.last_reward, frame.rolling_return) != (steps, rolling)
        assert misread <= 2 and episodes > 0


def test_a_requested_frame_shows_the_state_of_the_last_results() -> None:
    """Also with a rate of 0; images are scaled to the frame's size, with their proportions."""
    frames = tandem.FrameOptions((20, 12), envs="all", hz=0)
    with closing(_started(frames=frames)) as envs:
        for steps in range(1, 2 * _LENGTH):
            envs.step(np.zeros(_NUM_ENVS, np.int64))
            frame, _ = envs.client.drawn_frame()
            assert frame.shape == (36, 40, 3)
            assert frame[6, 10].tolist() == [steps % (_LENGTH + 1), 10, 200]
            assert not frame[:, :2].any() and frame[:, 2:18].any(axis=2).all()


def _watched(task: str, frames: Any) -> Any:
    """Makes environments in workers, or in C++ for a task of MuJoCo."""
    kind: dict[str, Any] = {} if task.endswith("v5") else {"num_workers": 2, "render_mode": "rgb_array"}
    return tandem.make_vec(task, 4, frames=frames, **kind)


@pytest.mark.parametrize("task", ["Acrobot-v1", "Hopper-v5"])
def test_a_run_without_steps_has_step_rate_zero(task: str) -> None:
    """Frames of the same step continue, slowly."""
    with closing(_watched(task, (16, 16))) as envs, FrameWatcher(envs.client.name) as watcher:
        envs.reset(seed=0)
        frame = watcher.wait()
        deadline = time.monotonic() + _WATCHDOG_SECS
        while frame.metadata["step"] != 1 or frame.step_rate_hz != 0 or frame.number < 4:
            assert time.monotonic() < deadline
            frame = watcher.wait(after=frame.number)


def test_a_step_is_drawn_once() -> None:
    """Further frames of the same step need no call of `render`."""
    with closing(_started()) as envs, FrameWatcher(envs.client.name) as watcher:
        watcher.wait(after=3)
        assert sum(envs.get_attr("renders")) <= 8


@pytest.mark.parametrize("task", ["Acrobot-v1", "HalfCheetah-v5", "Humanoid-v5"])
def test_frames_and_a_reader_do_not_change_the_run(task: str) -> None:
    """Results are equal bit by bit."""

    def run(frames: tandem.FrameOptions | None) -> tuple[bytes, int]:
        with closing(_watched(task, frames)) as envs, ExitStack() as watched:
            envs.action_space.seed(3)
            results = [envs.reset(seed=1)[0].tobytes()]
            watcher = watched.enter_context(FrameWatcher(envs.client.name)) if frames else None
            for step in range(400):
                obs, rewards, *ends, infos = envs.step(envs.action_space.sample())
                results += [obs.tobytes(), rewards.tobytes(), *(each.tobytes() for each in ends), pickle.dumps(infos)]
                if watcher is not None and step % 20 == 0:
                    watcher.wait(after=watcher.head)
            return b"".join(results), watcher.head if watcher else 0

    with_frames, frames = run(tandem.FrameOptions((48, 48), hz=1000))
    assert frames >= 20
    assert run(None) == (with_frames, 0)


def test_an_error_of_render_is_in_the_frames_metadata() -> None:
    """The image is black, and the run goes on."""
    with closing(_started()) as envs:
        envs.step(np.array([0, 1, 0, 0, 0, 0]))
        frame, metadata = envs.client.drawn_frame()
        assert b"ValueError: the lamp broke" in metadata and b"EngineFailed" in metadata
        assert not frame[:6, 8:].any() and frame[:6, :8].any()
        envs.step(np.zeros(_NUM_ENVS, np.int64))
        assert b"error" not in envs.client.drawn_frame()[1]


class _Untold(Exception):
    """Has no text."""

    def __str__(self) -> str:
        """Raises an exception."""
        raise RuntimeError


@pytest.mark.parametrize(
    "error", [SystemExit(4), KeyboardInterrupt(), _Untold()], ids=lambda error: type(error).__name__
)
def test_no_exception_of_render_ends_the_worker(error: BaseException) -> None:
    """The run goes on, as after such an exception of `step`."""

    class Exits(Colored):
        """Cannot be drawn."""

        def render(self) -> Any:
            """Raises an exception."""
            raise error

    with closing(tandem.make_vec(Exits, 2, frames=(8, 6))) as envs:
        envs.reset(seed=0)
        assert type(error).__name__.encode() in envs.client.drawn_frame()[1]
        envs.step(np.zeros(2, np.int64))


def test_a_worker_that_is_started_again_draws_again() -> None:
    """Its images are those of its new environments."""
    with (
        closing(_started(engine=tandem.WorkerOptions(restart=True))) as envs,
        FrameWatcher(envs.client.name) as watcher,
    ):
        _step_until(envs, lambda: watcher.head > 2)
        envs.step(np.array([2, 0, 0, 0, 0, 0]))
        head = watcher.head
        _step_until(envs, lambda: watcher.head > head + 3)
        frame, metadata = envs.client.drawn_frame()
        assert b"error" not in metadata and frame[0, 0, 2] == 200


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"render_mode": None}, r"'rgb_array', found None of environment 0; pass render_mode=\"rgb_array"),
        ({"frames": tandem.FrameOptions((8, 6), envs=[6])}, r"FrameOptions.envs\[0\]: expected .* found 6"),
        ({"frames": tandem.FrameOptions((8, 6), effects=["shadows"])}, "FrameOptions.effects"),
        ({"frames": tandem.FrameOptions((8, 6), camera="gymnasium")}, "camera: .*'gymnasium'"),
        ({"frames": tandem.FrameOptions((8192, 8192), envs="all")}, "frames: .* 16384, found 16384x24576 for 6 env"),
        ({"frames": (9_000, 6)}, r"frames\[0\]: expected .* 8192, found 9000"),
        ({"frames": 5}, "frames: expected"),
    ],
)
def test_frames_that_cannot_be_are_refused(options: dict[str, Any], fact: str) -> None:
    """With what was expected, what was found, and what to do."""
    frames = options.pop("frames", (8, 6))
    with pytest.raises(tandem.InvalidArgument, match=fact):
        tandem.make_vec(lambda: Colored(**options), _NUM_ENVS, frames=frames)


def test_each_shown_environment_must_draw() -> None:
    """The error names the first one that does not, also if it is not the first of its worker."""
    make = [Colored, Colored, lambda: Colored(render_mode=None), Colored]
    with pytest.raises(tandem.InvalidArgument, match="render_mode 'rgb_array', found None of environment 2; pass"):
        tandem.make_vec(make, num_workers=1, frames=(8, 6))
    with closing(tandem.make_vec(make, num_workers=1, frames=tandem.FrameOptions((8, 6), envs=[1, 3]))) as envs:
        envs.reset(seed=0)
