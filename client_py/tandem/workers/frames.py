"""Frames of environments in Python, for viewers.

    supervisor: a viewer is attached, a frame is due  ->  the order `message`
    workers:    env.render() of the shown environments  ->  their tiles on the board, a memory file
    supervisor: all workers have answered  ->  one frame in the region's ring

The workers draw between two exchanges, since a state in Python cannot be copied. `FramePace` makes that rare enough.
Orders and their acknowledgements publish the board, so no word of it is atomic.
"""

import json
import mmap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tandem._native import EnvRows, fit_image
from tandem.fastlane.tiling import checked_image, tile_frames

if TYPE_CHECKING:
    from tandem._engine import NativeSupervisor  # trainers do not load the module

# The most of the workers' time that drawing takes.
_SHARE = 0.05
_ORDER_SECS = 0.0005  # an order's own time
_LOOK_SECS = 0.2  # between two looks for a viewer
_REPEAT_SECS = 1.0  # between two frames of a run that does not step
_EPISODES = 100  # that the rolling return is the mean of
_ERROR_BYTES = 512

_TILE = np.dtype(
    [
        ("number", np.uint64),
        ("reward", np.float64),
        ("running_return", np.float64),
        ("error", f"S{_ERROR_BYTES}"),
    ]
)
_WORKER = np.dtype(
    [
        ("seconds", np.float64),  # for its last tiles
        ("episodes", np.uint64),
        ("kept", np.uint64),
        ("ended_ns", np.int64, _EPISODES),
        ("returns", np.float64, _EPISODES),
    ]
)


class FramePlan(NamedTuple):
    """What is drawn, how often.

    Attributes:
      width: Of one environment's image in pixels.
      height: The same.
      envs: Indices of the shown environments.
      hz: Most frames a second; 0: only those that the client requests.
      slots: Of the region's ring.
      num_workers: Number of worker processes.
    """

    width: int
    height: int
    envs: tuple[int, ...]
    hz: float
    slots: int
    num_workers: int

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the frame."""
        shape = tile_frames([np.zeros((1, 1), np.uint8)] * len(self.envs)).shape
        return shape[0], shape[1]

    def region_options(self) -> dict[str, Any]:
        """Returns the arguments of NativeSupervisor."""
        rows, columns = self.grid
        return {
            "frame_width": columns * self.width,
            "frame_height": rows * self.height,
            "frame_slots": self.slots,
            "metadata_bytes": 256 + 6 * _ERROR_BYTES + 11 * len(self.envs),  # JSON escapes some characters
        }


class FrameBoard:
    """The memory file that workers draw into.

    Attributes:
      wanted: uint64[1]: the number of the frame that is wanted.
      tiles: Structured [shown environments]: what their workers say of them.
      workers: Structured [workers].
      images: uint8[shown environments, height, width, 3].
    """

    def __init__(self, fd: int, plan: FramePlan) -> None:
        """Maps the file, which has `bytes_of(plan)`; `fd` stays the caller's."""
        memory = mmap.mmap(fd, self.bytes_of(plan))
        count = len(plan.envs)
        at = 0

        def array(dtype: Any, *shape: int) -> NDArray[Any]:
            nonlocal at
            found = np.frombuffer(memory, dtype, int(np.prod(shape)), at).reshape(shape)
            at += found.nbytes
            return found

        self.wanted = array(np.uint64, 1)
        self.tiles = array(_TILE, count)
        self.workers = array(_WORKER, plan.num_workers)
        self.images = array(np.uint8, count, plan.height, plan.width, 3)

    @staticmethod
    def bytes_of(plan: FramePlan) -> int:
        """Returns the size of the file."""
        count = len(plan.envs)
        image_bytes = plan.height * plan.width * 3
        return 8 + count * (_TILE.itemsize + image_bytes) + plan.num_workers * _WORKER.itemsize


class FramePainter:
    """A worker's part: draws its shown environments when a new frame is wanted."""

    def __init__(
        self,
        board: FrameBoard,
        plan: FramePlan,
        worker: int,
        first_env: int,
        envs: Sequence[gymnasium.Env[Any, Any]],
        rows: EnvRows,
        rewards: NDArray[np.float64],
    ) -> None:
        """Takes the worker's environments, and their last rewards, float64[envs]."""
        self._board, self._worker, self._envs, self._rows, self._rewards = board, worker, envs, rows, rewards
        self._places = [
            (place, env_id - first_env)
            for place, env_id in enumerate(plan.envs)
            if first_env <= env_id < first_env + len(envs)
        ]
        self._drawn = 0

    def paint(self) -> None:
        """Draws, if the wanted frame is a new one."""
        board, number = self._board, int(self._board.wanted[0])
        if number == self._drawn:
            return
        self._drawn = number
        begin = time.monotonic()
        episodes, ended_ns, returns, running = self._rows.episodes()
        for place, row in self._places:
            image, error = board.images[place], b""
            try:
                fit_image(image, checked_image(self._envs[row].render()))
            except Exception as raised:  # of the environment
                image[:] = 0
                error = f"{type(raised).__name__}: {raised}".encode(errors="replace")[:_ERROR_BYTES]
            board.tiles[place] = number, self._rewards[row], running[row], error
        own = board.workers[self._worker]
        own["ended_ns"][: len(ended_ns)] = ended_ns
        own["returns"][: len(returns)] = returns
        own["episodes"], own["kept"], own["seconds"] = episodes, len(returns), time.monotonic() - begin


class FramePace:
    """The supervisor's part: decides when the workers draw, and publishes what they have drawn.

    Attributes:
      due: `time.monotonic()` of the next look; infinity before `start`, and if only the client requests frames.
    """

    def __init__(self, region: "NativeSupervisor", board: FrameBoard, plan: FramePlan) -> None:
        """Takes the region; call `start` when it has its name."""
        self._region, self._board, self._plan = region, board, plan
        self.due = np.inf
        self._asked = False
        self._requested = False  # by the client
        self._steps = -1  # at the last frame that was asked for
        self._exchange = 0  # that the board shows
        self._published_at = 0.0
        self._rate_from = 0.0, 0  # time and steps

    def start(self) -> None:
        """The region has its name: viewers may come."""
        self._rate_from = time.monotonic(), self._region.steps
        self.due = np.inf if self._plan.hz == 0 else 0.0

    def look(self) -> None:
        """Asks the workers for a frame, if one is due. To be called from `due` on; other calls have no effect."""
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
        """The client requests a frame of the current state."""
        self._requested = True
        self._ask()

    def _ask(self) -> None:
        self._asked, self._steps = True, self._region.steps
        self._board.wanted[0] += 1
        self._region.message_workers()

    def answered(self) -> None:
        """All workers have answered a message: publishes the frame, if they all have drawn it."""
        # A message before this frame's may have been answered; and a request may have come after this message.
        if not self._asked or not (self._board.tiles["number"] == self._board.wanted[0]).all():
            return
        now = time.monotonic()
        self._asked, self._exchange = False, self._region.answered_at
        self._publish(now)
        if self._requested:
            self._requested = False
            self._region.answer_frame()
        if self._plan.hz > 0:
            cost = float(self._board.workers["seconds"].max()) + _ORDER_SECS
            self.due = now + max(1 / self._plan.hz - cost, cost * (1 / _SHARE - 1))

    def _publish(self, now: float) -> None:
        tiles, workers = self._board.tiles, self._board.workers
        rows, columns = self._plan.grid
        metadata = {
            "step": self._exchange,
            "envs": self._plan.envs,
            "rows": rows,
            "columns": columns,
            "episodes": int(workers["episodes"].sum()),
        }
        errors = [bytes(error) for error in tiles["error"] if error]
        if errors:
            metadata |= {"error": "EngineFailed", "error_text": errors[0].decode(errors="replace")}
        (since, before), steps = self._rate_from, self._region.steps
        self._rate_from = now, steps
        self._published_at = now
        self._region.publish_frame(
            tile_frames(list(self._board.images)),
            float(tiles["reward"].mean()),
            rolling_return(workers, tiles["running_return"]),
            (steps - before) / (now - since) if now > since else 0.0,
            json.dumps(metadata, separators=(",", ":")),
        )


def rolling_return(workers: NDArray[Any], running: NDArray[np.float64]) -> float:
    """Returns the mean return of the last episodes of all workers; before the first, the mean of `running`."""
    ended = [np.stack([each["ended_ns"], each["returns"]], 1)[: int(each["kept"])] for each in workers]
    last = np.concatenate(ended)
    if not len(last):
        return float(running.mean())
    return float(last[np.argsort(last[:, 0], kind="stable")][-_EPISODES:, 1].mean())
