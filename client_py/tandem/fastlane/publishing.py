"""`publish_frames`: shows any Gymnasium environment to viewers while it runs."""

import json
import os
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import logger
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from tandem._native import EpisodeReturns
from tandem.arguments import rate
from tandem.engine.worker_environment import RUN_ID_VARIABLE, WorkerSettings
from tandem.errors import ForkedChild, InvalidArgument, TandemError
from tandem.fastlane.frames import FastLaneConfig, FastLaneMetrics
from tandem.fastlane.tiling import checked_image, described_images, grid_of, tile_frames
from tandem.fastlane.writer import FastLaneWriter

if TYPE_CHECKING:
    _VectorWrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    _VectorWrapper = VectorWrapper  # Gymnasium 1.1's is not generic

# Episodes that the rolling return is the mean of.
_WINDOW = 100
_CAPACITY = 8
_METADATA_SIZE = 512
# Seconds between two looks for a reader while nothing is published.
_LOOK_S = 1.0


def publish_frames(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    run_id: str | None = None,
    *,
    max_hz: float = 60,
    unseen_hz: float = 1.0,
) -> Any:
    """Wraps an environment so that viewers show it while it runs.

    After some steps and resets the wrapper calls `env.render()` and publishes the image under `run_id`, with reward,
    rolling return (the mean of the last 100 episodes) and step rate (of all environments together). The images of a
    vector environment are tiled. Rate and viewers are checked before `render` is called: without a viewer and with
    `unseen_hz=0` nothing is rendered, and a step takes under a microsecond more. (The segment begins empty, with frames
    of one pixel, until the first image is rendered.)

    A missing segment ends no training. If the segment cannot be made later (/dev/shm is full, another run has taken the
    run id), the wrapper warns once and tries again each second. A wrapper that steps in a forked child warns once and
    publishes nothing. An error of `render` is raised by the step or reset that needed the image.

    The wrapper reads the variables of `apply_fastlane_environment`: video mode "off" publishes nothing, "single" shows
    environment SLOT of a vector, "grid" the first GRID_LIMIT.

    Args:
      env: Made with render_mode="rgb_array": `render` returns uint8[height, width, 3 or 4], or one for each
        environment.
      run_id: The run's name, for viewers; None: that of the daemon's run, which the variable TANDEM_RUN_ID has.
      max_hz: The most frames a second while a viewer is open; each takes a `render`.
      unseen_hz: The same while no viewer is known: MOSAIC's readers cannot be seen.

    Returns:
      The wrapped environment, a `PublishFrames` or `PublishVectorFrames`; its `close` also ends the publishing.

    Raises:
      InvalidArgument: Another render mode, invalid rates or variables, or an invalid run id, or none (also a
        ValueError). During a step or reset: invalid images.
      AlreadyAttached: A live writer has that run id.
      OutOfSharedMemory: /dev/shm has no room even for a pixel.
      AccessDenied: The name belongs to another user.
    """
    if run_id is None:
        run_id = os.environ.get(RUN_ID_VARIABLE)
        if not run_id:
            raise InvalidArgument(f"run_id: expected a name, found None, and no run of the daemon ({RUN_ID_VARIABLE})")
    if isinstance(env, VectorEnv):
        return PublishVectorFrames(env, run_id, max_hz=max_hz, unseen_hz=unseen_hz)
    return PublishFrames(env, run_id, max_hz=max_hz, unseen_hz=unseen_hz)


class _Publisher:
    """Decides when to render, and publishes. `tick` is due from `due` on, of `time.monotonic()`; infinity: off."""

    def __init__(self, env: Any, run_id: str, max_hz: float, unseen_hz: float, num_envs: int | None) -> None:
        self.settings = WorkerSettings.read()
        self._env = env
        self._run_id = run_id
        self._period = _period("max_hz", max_hz)
        self._unseen_period = _period("unseen_hz", unseen_hz)
        if self._period == np.inf:
            raise InvalidArgument("max_hz: expected a rate above 0; to publish nothing, don't wrap the environment")
        self._shown: Sequence[int] = range(1) if num_envs is None else self.settings.shown(num_envs)
        self._frames_of_many = num_envs is not None
        self._num_envs = num_envs or 1
        self._writer: FastLaneWriter | None = None
        self.due = np.inf
        if self.settings.video_mode == "off":
            return
        if env.render_mode != "rgb_array":
            raise InvalidArgument(
                f"env: expected render_mode 'rgb_array', found {env.render_mode!r}; "
                "make it with gymnasium.make(..., render_mode='rgb_array')"
            )
        # The frame's size is known after the first render. Readers need a segment before.
        self._config = FastLaneConfig(1, 1, capacity=1)
        self._writer = FastLaneWriter.create(run_id, self._config)
        self._warned = False
        self.due = 0.0
        self._published_at = -1e9  # long ago; and an infinite period after that is never
        self._rate_from = time.monotonic()
        self._rate_steps = 0

    def tick(self, now: float, steps: int, last_reward: float, rolling_return: float, ended: dict[str, Any]) -> None:
        """Publishes a frame if one is due. To be called from `due` on, with `now` of `time.monotonic()`.

        `ended` is the part of the metadata that `_ended` makes.
        """
        writer = self._segment()
        if writer is None:
            self.due = now + _LOOK_S
            return
        try:
            period = self._period if writer.has_reader() else self._unseen_period
        except ForkedChild as error:
            self.due = np.inf
            self._warn(error)
            return
        if now < self._published_at + period:
            self.due = min(self._published_at + period, now + _LOOK_S)
            return
        frame, envs = self._image(self._env.render())
        writer = self._fitting(frame)
        if writer is None:
            self.due = now + _LOOK_S
            return
        elapsed = now - self._rate_from
        rate = (steps - self._rate_steps) * self._num_envs / elapsed if elapsed > 0 else 0.0
        self._rate_from, self._rate_steps = now, steps
        writer.publish(
            frame,
            metrics=FastLaneMetrics(last_reward, rolling_return, rate),
            metadata=json.dumps({"step": steps, **envs, **ended}, separators=(",", ":")),
        )
        self._published_at = now
        self.due = now + min(period, _LOOK_S)

    def _image(self, rendered: Any) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Makes one frame of the result of `render`, and the metadata of its tiles."""
        rows, columns = grid_of(len(self._shown))
        grid = {"envs": list(self._shown), "rows": rows, "columns": columns}
        if not self._frames_of_many:
            return checked_image(rendered), grid
        # An image for each environment, or one that the environment has tiled itself.
        if isinstance(rendered, np.ndarray) and rendered.ndim == 3:
            return checked_image(rendered), {}
        if not isinstance(rendered, Sequence | np.ndarray) or len(rendered) <= max(self._shown):
            raise InvalidArgument(
                f"env.render(): expected a frame for each environment, found {described_images(rendered)}; "
                f"environments {list(self._shown)} were to be shown"
            )
        return checked_image(tile_frames([rendered[i] for i in self._shown])), grid

    def _fitting(self, frame: NDArray[np.uint8]) -> FastLaneWriter | None:
        """Returns the segment for frames of this shape; closes a segment of another shape first."""
        height, width, channels = frame.shape
        pixel_format = "RGB" if channels == 3 else "RGBA"
        config = FastLaneConfig(width, height, channels, pixel_format, _CAPACITY, _METADATA_SIZE)
        if config != self._config and self._writer is not None:
            self._writer.close()
            self._writer, self._config = None, config
        return self._segment()

    def _segment(self) -> FastLaneWriter | None:
        """Makes the segment, if there is none; None: it cannot be made now, and the user was warned once."""
        if self._writer is None:
            try:
                self._writer = FastLaneWriter.create(self._run_id, self._config)
            except InvalidArgument:  # a frame too large for any segment
                raise
            except TandemError as error:
                self._warn(error)
        return self._writer

    def _warn(self, error: TandemError) -> None:
        if not self._warned:
            self._warned = True
            logger.warn("publish_frames: the run goes on, but cannot be watched for now: %s", error)

    def close(self) -> None:
        """Ends the publishing. A second call has no effect."""
        self.due = np.inf
        if self._writer is not None:
            self._writer.close()


class PublishFrames(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose frames are published; see `publish_frames`."""

    def __init__(
        self, env: gymnasium.Env[Any, Any], run_id: str, *, max_hz: float = 60, unseen_hz: float = 1.0
    ) -> None:
        """Wraps an environment; the arguments are those of `publish_frames`."""
        super().__init__(env)
        self._step = env.step
        self._publisher = _Publisher(env, run_id, max_hz, unseen_hz, None)
        self._steps = 0
        self._return, self._begin = 0.0, 0  # of the current episode: its return so far, the steps before it
        self._returns: deque[float] = deque(maxlen=_WINDOW)
        self._lengths: deque[int] = deque(maxlen=_WINDOW)
        self._episodes = 0

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps the environment, then publishes a frame if one is due."""
        results = self._step(action)
        _, reward, terminated, truncated, _ = results
        self._steps += 1
        self._return += float(reward)
        if terminated or truncated:
            self._returns.append(self._return)
            self._lengths.append(self._steps - self._begin)
            self._episodes += 1
            self._return, self._begin = 0.0, self._steps
        now = time.monotonic()
        if now >= self._publisher.due:
            self._publish(now, float(reward))
        return results

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment, then publishes a frame if one is due."""
        results = self.env.reset(seed=seed, options=options)
        self._return, self._begin = 0.0, self._steps
        now = time.monotonic()
        if now >= self._publisher.due:
            self._publish(now, 0.0)
        return results

    def _publish(self, now: float, reward: float) -> None:
        rolling, length = self._return, None
        if self._returns:
            rolling, length = sum(self._returns) / len(self._returns), sum(self._lengths) / len(self._lengths)
        self._publisher.tick(now, self._steps, reward, rolling, _ended(self._episodes, length))

    def close(self) -> None:
        """Ends the publishing and closes the environment."""
        self._publisher.close()
        super().close()


class PublishVectorFrames(_VectorWrapper):
    """A vector environment whose frames are published; see `publish_frames`."""

    def __init__(
        self, env: VectorEnv[Any, Any, Any], run_id: str, *, max_hz: float = 60, unseen_hz: float = 1.0
    ) -> None:
        """Wraps environments; the arguments are those of `publish_frames`."""
        super().__init__(env)
        self._publisher = _Publisher(env, run_id, max_hz, unseen_hz, env.num_envs)
        settings = self._publisher.settings
        only = settings.slot if settings.video_mode == "single" else -1
        resets_next = env.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP
        self._returns = EpisodeReturns(env.num_envs, only, _WINDOW, resets_next)
        self._steps = 0

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the environments, then publishes a frame if one is due."""
        results = self.env.step(actions)
        self._steps += 1
        self._returns.add(results[1], results[2], results[3])
        now = time.monotonic()
        if now >= self._publisher.due:
            self._publish(now)
        return results

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environments, then publishes a frame if one is due."""
        mask = (options or {}).get("reset_mask")  # some environments remove it
        results = self.env.reset(seed=seed, options=options)
        self._returns.reset(mask)
        now = time.monotonic()
        if now >= self._publisher.due:
            self._publish(now)
        return results

    def _publish(self, now: float) -> None:
        returns = self._returns
        ended = _ended(returns.episodes, returns.rolling_length())
        self._publisher.tick(now, self._steps, returns.last_reward, returns.rolling_return(), ended)

    def close(self, **kwargs: Any) -> None:
        """Ends the publishing and closes the environments."""
        self._publisher.close()
        super().close(**kwargs)


def _ended(episodes: int, length: float | None) -> dict[str, Any]:
    """Returns the metadata of the ended episodes: their number, and the mean length of the last ones."""
    return {"episodes": episodes} | ({} if length is None else {"episode_length": length})


def _period(name: str, hz: float) -> float:
    """Returns the seconds between frames; infinity for a rate of 0."""
    hz = rate(name, hz)
    return 1 / hz if hz > 0 else float(np.inf)
