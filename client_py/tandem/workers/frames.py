"""Frames of environments in Python, for viewers.

    supervisor: a viewer is attached, a frame is due  ->  the order `message`
    workers:    env.render() of the shown environments  ->  their tiles in the buffer, a memory file
    supervisor: all workers have answered  ->  one frame in the region's ring

The workers draw between two exchanges, since a state in Python cannot be copied. `FramePace` limits their time for it.

Orders and their acknowledgements publish the buffer, so no word of it is atomic. There is one exception: a request may
raise `FrameBuffer.wanted` while workers read it for an earlier order. The word is aligned, so they read the old or the
new number. The request's own order follows in both cases.
"""

import json
import mmap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tandem._native import NO_ENVIRONMENT, ROLLING_EPISODES, EnvRows, fit_image
from tandem.fastlane.tiling import checked_image, grid_of, tile_frames
from tandem.workers.env_failures import one_line

if TYPE_CHECKING:
    from tandem._engine import NativeSupervisor  # trainers do not load the module

_SHARE = 0.05  # of the workers' time, that drawing takes at most
_ORDER_SECS = 0.0005  # that an order takes, in addition to the drawing
_LOOK_SECS = 0.2  # between two looks for a viewer
_REPEAT_SECS = 1.0  # between two frames of a run that does not step
_ERROR_BYTES = 512  # of the text of an exception, in UTF-8

# What a worker writes beside the image of an environment.
_TILE = np.dtype(
    [
        ("number", np.uint64),  # of the frame that the image belongs to
        ("reward", np.float64),  # of the last step
        ("running_return", np.float64),  # of the current episode
        ("error", f"S{_ERROR_BYTES}"),  # of `render`; empty: none
    ]
)
# What a worker writes about itself.
_WORKER = np.dtype(
    [
        ("seconds", np.float64),  # that its last tiles took
        ("episodes", np.uint64),  # that have ended
        ("kept", np.uint64),  # items of the next two arrays
        ("ended_ns", np.int64, ROLLING_EPISODES),  # CLOCK_MONOTONIC
        ("returns", np.float64, ROLLING_EPISODES),
        ("lengths", np.float64, ROLLING_EPISODES),
    ]
)


class FramePlan(NamedTuple):
    """What is drawn, and how often: pixels of one environment's image, `envs` in the order of their tiles.

    `hz` is the most frames a second, 0: only those that the client requests. `complete`: drawing may take any part of
    the workers' time. `slots` is of the region's ring.
    """

    width: int
    height: int
    envs: tuple[int, ...]
    hz: float
    complete: bool
    slots: int
    num_workers: int

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the frame."""
        return grid_of(len(self.envs))

    def region_options(self) -> dict[str, Any]:
        """Returns the arguments of NativeSupervisor for these frames."""
        rows, columns = self.grid
        return {
            "frame_width": columns * self.width,
            "frame_height": rows * self.height,
            "frame_slots": self.slots,
            # JSON escapes a byte of the text as at most six. An index has up to eight digits.
            "metadata_bytes": 256 + 6 * _ERROR_BYTES + 11 * len(self.envs),
        }


class FrameBuffer:
    """The arrays of the memory file that workers draw into. The mapping lives as long as one of them."""

    def __init__(self, fd: int, plan: FramePlan) -> None:
        """Maps the file of `bytes_of(plan)` bytes; `fd` stays the caller's."""
        memory = mmap.mmap(fd, self.bytes_of(plan))
        count = len(plan.envs)
        at = 0

        def array(dtype: Any, *shape: int) -> NDArray[Any]:
            nonlocal at
            found = np.frombuffer(memory, dtype, int(np.prod(shape)), at).reshape(shape)
            at += found.nbytes
            return found

        self.wanted = array(np.uint64, 1)  # the number of the frame that is wanted, by the supervisor; 0: none yet
        self.tiles = array(_TILE, count)  # these and the images: by the worker of each shown environment
        self.workers = array(_WORKER, plan.num_workers)  # by each worker
        self.images = array(np.uint8, count, plan.height, plan.width, 3)

    @staticmethod
    def bytes_of(plan: FramePlan) -> int:
        """Returns the size of the file."""
        count = len(plan.envs)
        image_bytes = plan.height * plan.width * 3
        return 8 + count * (_TILE.itemsize + image_bytes) + plan.num_workers * _WORKER.itemsize


class FramePainter:
    """A worker's part: draws its shown environments when another frame is wanted."""

    def __init__(
        self,
        buffer: FrameBuffer,
        plan: FramePlan,
        worker: int,
        first_env: int,
        envs: Sequence[gymnasium.Env[Any, Any]],
        rows: EnvRows,
        rewards: NDArray[np.float64],
        current: NDArray[np.uint32],
    ) -> None:
        """Takes the worker's environments, of which `first_env` is the first, and its rows, for the episodes.

        `rewards`, float64[envs], and `current`, uint32[1], the environment in work, for display, are views of the
        region.
        """
        self._buffer, self._worker, self._envs, self._rows = buffer, worker, envs, rows
        self._rewards, self._current, self._first_env = rewards, current, first_env
        self._places = [
            (place, env_id - first_env)
            for place, env_id in enumerate(plan.envs)
            if first_env <= env_id < first_env + len(envs)
        ]
        self._drawn = 0

    def paint(self) -> None:
        """Draws, if the wanted frame is a new one."""
        buffer, number = self._buffer, int(self._buffer.wanted[0])
        if number == self._drawn:
            return
        self._drawn = number
        begin = time.monotonic()
        episodes, ended_ns, returns, lengths, running, *_ = self._rows.episodes()
        for place, row in self._places:
            image, error = buffer.images[place], b""
            self._current[0] = self._first_env + row
            try:
                fit_image(image, checked_image(self._envs[row].render()))
            except BaseException as raised:  # of the environment; also SystemExit, as its `step` may raise it
                image[:] = 0
                error = one_line(raised).encode(errors="replace")[:_ERROR_BYTES]
            buffer.tiles[place] = number, self._rewards[row], running[row], error
        self._current[0] = NO_ENVIRONMENT
        own = buffer.workers[self._worker]
        own["ended_ns"][: len(ended_ns)] = ended_ns
        own["returns"][: len(returns)] = returns
        own["lengths"][: len(lengths)] = lengths
        own["episodes"], own["kept"], own["seconds"] = episodes, len(returns), time.monotonic() - begin


class FramePace:
    """The supervisor's part: decides when the workers draw, and publishes what they have drawn.

    `due` is the time of the next `look`, of time.monotonic(). Infinity before `start`, and with hz = 0.
    """

    def __init__(self, region: "NativeSupervisor", buffer: FrameBuffer, plan: FramePlan) -> None:
        """Takes the region; call `start` when it has its name."""
        self._region, self._buffer, self._plan = region, buffer, plan
        self._grid = plan.grid
        self.due = np.inf
        self._asked = False  # for a frame that the workers have not drawn yet
        self._requested = False  # by the client, and not answered
        self._steps = -1  # at the last frame that was asked for
        self._exchange = 0  # whose frames the buffer has
        self._published_at = 0.0  # time.monotonic() of the last frame
        self._rate_from = 0.0, 0  # time and steps at the last frame, for the step rate

    def start(self) -> None:
        """Begins to look for viewers: the region has its name."""
        self._rate_from = time.monotonic(), self._region.steps
        self.due = np.inf if self._plan.hz == 0 else 0.0

    def look(self) -> None:
        """Orders a frame, if a viewer is attached and the run has stepped; without steps, repeats the last one.

        Call it from `due` on; an earlier call has no effect. `due` is then the time of the next call.
        """
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + _LOOK_SECS
        steps = self._region.steps
        if self._asked or steps == 0 or not self._region.frames_watched():
            return
        if steps != self._steps:
            self._ask()
        elif now >= self._published_at + _REPEAT_SECS:
            self._publish(now)

    def request(self) -> None:
        """Orders a frame that answers the client's request; call it at "frame wanted"."""
        self._requested = True
        self._ask()

    def _ask(self) -> None:
        self._asked, self._steps = True, self._region.steps
        self._buffer.wanted[0] += 1
        self._region.message_workers()

    def answered(self) -> None:
        """Publishes the frame, if all workers have drawn it; call it at "workers answered"."""
        # The answered message may be one before this frame's; and a request may have come after the message.
        if not self._asked or not (self._buffer.tiles["number"] == self._buffer.wanted[0]).all():
            return
        now = time.monotonic()
        self._asked, self._exchange = False, self._region.answered_at
        self._publish(now)
        if self._requested:
            self._requested = False
            self._region.answer_frame()
        if self._plan.hz > 0:
            cost = float(self._buffer.workers["seconds"].max()) + _ORDER_SECS
            self.due = now + max(1 / self._plan.hz - cost, 0 if self._plan.complete else cost * (1 / _SHARE - 1))

    def _publish(self, now: float) -> None:
        tiles, workers = self._buffer.tiles, self._buffer.workers
        rows, columns = self._grid
        metadata = {
            "step": self._exchange,
            "envs": self._plan.envs,
            "rows": rows,
            "columns": columns,
            "episodes": int(workers["episodes"].sum()),
        }
        length = rolling_mean(workers, "lengths")
        if length is not None:
            metadata["episode_length"] = length
        errors = [bytes(error) for error in tiles["error"] if error]
        if errors:
            metadata |= {"error": "EngineFailed", "error_text": errors[0].decode(errors="replace")}
        (since, before), steps = self._rate_from, self._region.steps
        self._rate_from = now, steps
        self._published_at = now
        rolling = rolling_mean(workers, "returns")
        self._region.publish_frame(
            tile_frames(list(self._buffer.images)),
            float(tiles["reward"].mean()),
            float(tiles["running_return"].mean()) if rolling is None else rolling,
            (steps - before) / (now - since) if now > since else 0.0,
            json.dumps(metadata, separators=(",", ":")),
        )


def rolling_mean(workers: NDArray[Any], what: str) -> float | None:
    """Returns a mean of the last episodes of all workers, _WORKER[num_workers]; None: none has ended.

    `what` is "returns" or "lengths".
    """
    ended = [np.stack([each["ended_ns"], each[what]], 1)[: int(each["kept"])] for each in workers]
    last = np.concatenate(ended)
    if not len(last):
        return None
    return float(last[np.argsort(last[:, 0], kind="stable")][-ROLLING_EPISODES:, 1].mean())
